"""conv2d, warp-specialised (Gluon): a warpgroup copies slices, two others multiply them by wgmma.

In `implicit_gemm` the warps that multiply find the addresses of the next slice, too, as Triton pipelines it. Here a program
divides its warps, as matmul's warp_specialized does. A slice is 128 bytes of channels of one tap: the pixels of the tile's
positions, one after the other whatever row or image they are in, and the filters. Of a position the place of the first tap's
pixel is known for the whole tile, so a slice takes an addition and two comparisons for each.

CUDA leaves the pixels' addresses to the copy engine (im2col maps). Triton 3.6's descriptors have only boxes of rows and
columns. So the producer is a whole warpgroup, whose threads copy pixels by cp.async, 16 bytes each, with zeros where a tap is
outside of its image; it asks TMA for the filters.

wgmma ignores the low bits of fp32 that tf32 lacks. TMA rounds filters on the way. Pixels are rounded in the consumers'
registers, from which wgmma takes its first operand, too: a pass over the image would read and write it once more, and to round
in shared memory every slice. So a consumer waits for its product before it loads the next part of a slice, while the other one
multiplies.

Filters are few and any number of them: 168 would take tiles of 256. So a tile may have 192 of them, 160 or 96: a power of two
(LEFT) and a rest (RIGHT) of 64 or 32, as in matmul's warp_specialized. Each has its own boxes, products and sums.

Which slices a program multiplies is operations/conv2d_weight/pieces.py's. Of tiles that several share the sums go to a
workspace, and a second kernel adds them up, in the order of the reduction.

Mirrors cuda_reference/conv2d/warp_specialized.cuh, which has clusters, too: in Gluon of Triton 3.6 a slice goes to one block.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from ..choice.work import STORED, Work, ahead_of
from ..config import config_of
from ..design import Design
from ..integers import ceil_div
from ..language.activation import activated
from ..language.channels_last import are_in_chunks, copied, in_chunks
from ..language.convolution import Geometry
from ..language.descriptor import describe_for_gluon
from ..language.epilogue import rounded
from ..language.gluon_tile import needs_a_gpu
from ..language.last_to_arrive import sum_of_splits
from ..language.overlap import wait_for_earlier_kernels
from ..language.renamed import reinterpret
from ..language.shared_walk import Shares, count_parts
from ..language.structs import Images, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.conv2d.on_hopper import refuses_on_hopper
from ..operations.conv2d.taps import CHUNK, Taps, are_across, every_tap, lie_along, matrices
from ..operations.conv2d_weight.pieces import cut
from ..problem import LARGEST_TILE, needs_wide_offsets
from ..workspace import partial_sums
from .parts.pixel_boxes import Ring, Tile, consume, produce

ROW_BYTES, CONSUMERS = 128, 2  # of a slice's channels
TILES = (  # positions, filters, STAGES: what fits in shared memory with the store of a result
    (128, 256, 4),
    (256, 128, 4),
    (128, 192, 5),
    (128, 160, 5),
    (256, 96, 4),
    (128, 128, 6),
    (128, 96, 7),
    (256, 64, 5),
    (128, 64, 8),
    (64, 256, 5),
    (64, 128, 8),
)
ADD = triton.Config({"BLOCK": 512, "BLOCK_S": 8}, num_warps=4, num_stages=1)


@gluon.jit
def _warp_specialized_kernel(
    input: Images, filters, filters_rest, bias: Vector, out: Images, residual: Images, parts, g: Geometry, taps: Taps,
    cut: Shares, most, tile: Tile,
):  # fmt: skip
    """filters, filters_rest: descriptors of (taps, K, C), or FILTERS_INSIDE (taps, C, K), of boxes of LEFT filters and of
    RIGHT, or None. parts: (tiles left, most parts of a tile, M, N); None if all tiles are whole."""
    wait_for_earlier_kernels()
    STAGES: gl.constexpr = tile.STAGES
    dtype: gl.constexpr = filters.dtype
    BITS: gl.constexpr = 128 // tile.CHUNK
    LAYOUT: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=BITS, rank=2)
    pixel_boxes = gl.allocate_shared_memory(dtype, [STAGES, tile.M, tile.DEPTH], LAYOUT)
    filter_boxes = gl.allocate_shared_memory(dtype, [STAGES] + filters.block_type.shape, filters.layout)  # noqa: RUF005
    rest = None
    if filters_rest is not None:
        REST: gl.constexpr = filters_rest.block_type.shape
        rest = gl.allocate_shared_memory(dtype, [STAGES] + REST, filters_rest.layout)  # noqa: RUF005
    left = reinterpret(pixel_boxes, dtype, [STAGES * tile.DOWN, tile.M // tile.DOWN, tile.DEPTH], LAYOUT)
    COLS: gl.constexpr = tile.LEFT // tile.ACROSS
    if tile.FILTERS_INSIDE:
        right = reinterpret(filter_boxes, dtype, [STAGES * tile.ACROSS, tile.DEPTH, COLS], LAYOUT)
    else:
        right = reinterpret(filter_boxes, dtype, [STAGES * tile.ACROSS, COLS, tile.DEPTH], LAYOUT)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=2)  # pixels, filters
        mbarrier.init(empty.index(i), count=2)  # consumers
    ring = Ring(pixel_boxes, filter_boxes, rest, left, right, full, empty)
    # ptxas: with operands in registers wgmma runs asynchronously only if what it takes fits in the fewest registers of any warp
    # And with two boxes of filters a tile spills if the producer has 104, 120 or 144 registers
    CONSUMER: gl.constexpr = 184 if tile.TF32 or tile.RIGHT > 0 else 200
    PRODUCER: gl.constexpr = 144 if tile.TF32 else (136 if tile.RIGHT > 0 else 104)
    gl.warp_specialize(
        [
            (consume, (0, bias, residual, out, parts, ring, g, cut, most, tile)),
            (consume, (1, bias, residual, out, parts, ring, g, cut, most, tile)),
            (produce, (input, filters, filters_rest, ring, g, taps, cut, tile)),
        ],
        [4, 4],
        [CONSUMER, PRODUCER],
    )


@triton.jit
def _add_parts_kernel(
    parts, bias: Vector, out: Images, residual: Images, g: Geometry, cut: Shares, most, M: tl.constexpr, N: tl.constexpr,
    ACTIVATION: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    """Adds up the parts of the tiles left, and what follows; BLOCK elements of a tile a program."""
    wait_for_earlier_kernels()
    tile = tl.program_id(0) // (M * N // BLOCK)
    element = tl.program_id(0) % (M * N // BLOCK) * BLOCK + tl.arange(0, BLOCK)
    across = tl.cdiv(g.K, N)
    pixel = (tile + cut.whole) // across * M + element // N
    k = (tile + cut.whole) % across * N + element % N
    n = pixel // g.Q // g.P
    p = pixel // g.Q % g.P
    q = pixel % g.Q
    inside = (n < g.N) & (k < g.K)
    first = parts + tl.cast(tile, tl.int64) * most * (M * N) + element
    total = sum_of_splits(first, inside, count_parts(tile, cut), M * N, BLOCK_S)
    if bias is not None:
        total += tl.load(bias.ptr + k * bias.step, mask=inside, other=0)
    if WIDE:
        n, k, p, q = n.to(tl.int64), k.to(tl.int64), p.to(tl.int64), q.to(tl.int64)
    if residual is not None:
        added = residual.ptr + n * residual.n + k * residual.c + p * residual.h + q * residual.w
        total += tl.load(added, mask=inside, other=0)
    total = activated(total, ACTIVATION, out.ptr.dtype.element_ty.primitive_bitwidth == 16)
    places = out.ptr + n * out.n + k * out.c + p * out.h + q * out.w
    tl.store(places, rounded(total, out.ptr.dtype.element_ty), mask=inside)


def refuses(problem, target):
    positions = problem.n * problem.p * problem.q
    if positions >= 2**31 - LARGEST_TILE:
        return f"it numbers output pixels in 32 bits, {positions} are too many"
    return refuses_on_hopper(problem, target, along=True) or needs_a_gpu(target)


def configs(problem, target):
    """Each tile, with the last wave's shared to the slice, and whole."""
    for block_m, block_n, stages in TILES:
        for shares in (True, False):
            numbers = {"BLOCK_M": block_m, "BLOCK_N": block_n, "STAGES": stages, "CONSUMERS": CONSUMERS}
            yield config_of(numbers | {"SHARES": shares, "PROGRAMS": target.sms}, num_warps=4, num_stages=1)


def _depth(problem):
    """The channels of a slice."""
    return ROW_BYTES // problem.dtype.itemsize


def _cut(problem, config):
    """(the Cut, programs, slices of the one that has most)."""
    numbers, positions = config.kwargs, problem.n * problem.p * problem.q
    tiles = ceil_div(positions, numbers["BLOCK_M"]) * ceil_div(problem.k, numbers["BLOCK_N"])
    slices, programs = problem.r * problem.s * ceil_div(problem.c, _depth(problem)), numbers["PROGRAMS"]
    share = cut(tiles, slices, programs if numbers["SHARES"] else tiles)
    programs = min(programs, share.blocks)
    left = max(share.head, ceil_div(share.left * share.tail, max(1, share.sharers))) if share.left else 0
    return share, programs, ceil_div(share.whole, programs) * slices + left


def _legal(matrices):
    """The same matrices, with strides that TMA takes also of dimensions of one."""
    (taps, rows, columns), (tap, row, _) = matrices.shape, matrices.stride()
    row = row if rows > 1 else columns
    return matrices.as_strided(matrices.shape, (tap if taps > 1 else rows * row, row, 1))


def launches(problem, config, input, weight, bias, out, residual=None, taps=None):
    """taps: where the convolution's are among those of `weight`, if it has more of them or in another order."""
    across = are_across(weight)
    operands = (input, are_in_chunks), (weight, lambda filters: across or lie_along(filters, 1))
    (input, filters), copies = in_chunks(*operands)
    yield from copies
    numbers, (share, programs, _) = config.kwargs, _cut(problem, config)
    block_m, block_n = numbers["BLOCK_M"], numbers["BLOCK_N"]
    shared = share.left > 0 and share.parts > 1
    parts = partial_sums(share.left * share.parts, block_m * block_n, out) if shared else None
    down, words = 2 if block_m > 64 else 1, out.stride(1) == 1 and are_in_chunks(out)
    left, depth, is_tf32 = 1 << block_n.bit_length() - 1, _depth(problem), problem.precision == "tf32"
    right = block_n - left
    sizes = block_m, block_n, left, right, down, CONSUMERS // down, numbers["STAGES"], depth, CHUNK // problem.dtype.itemsize
    added_words = residual is not None and residual.stride(1) == 1 and are_in_chunks(residual)
    follows = problem.activation, problem.dtype.itemsize == 2
    tile = *sizes, out.stride(1) != 1, words, added_words, across, is_tf32, *follows

    def boxes(count):
        shape = [1, depth, count] if across else [1, count, depth]
        return describe_for_gluon(_legal(matrices(filters, across)), shape, is_tf32) if count else None

    operands = Images.of(input), boxes(left), boxes(right), Vector.of(bias)
    operands += Images.of(out), Images.of(residual), parts
    operands += Geometry.of(problem), taps or every_tap(problem)
    wide = problem.wide or needs_wide_offsets(input)  # of the copy, which has zeros
    constants = Tile(*map(tl.constexpr, (*tile, wide)))
    yield TritonLaunch(_warp_specialized_kernel, (programs,), config, *operands, Shares.of(share), share.parts, constants)
    if shared:
        grid = (share.left * (block_m * block_n // ADD.kwargs["BLOCK"]),)
        constants = {"M": block_m, "N": block_n, "ACTIVATION": problem.activation, "WIDE": problem.wide}
        structs = Vector.of(bias), Images.of(out), Images.of(residual), Geometry.of(problem), Shares.of(share)
        yield TritonLaunch(_add_parts_kernel, grid, ADD, parts, *structs, share.parts, **constants)


def work(problem, config, target):
    numbers, (share, programs, longest) = config.kwargs, _cut(problem, config)
    bm, bn, stages = numbers["BLOCK_M"], numbers["BLOCK_N"], numbers["STAGES"]
    shared = share.left > 0 and share.parts > 1
    results = problem.outputs * problem.dtype.itemsize / programs
    main = Work(
        programs,
        128 * CONSUMERS,
        2.0 * bm * bn * _depth(problem) * longest,
        problem.precision,
        longest * (bm + bn) * ROW_BYTES + (4 * bm * bn if shared else 0) + results,
        problem.bytes,
        2 + longest / ahead_of(stages),
        168,
        stages * (bm + bn) * ROW_BYTES,
        bm * bn * STORED * (ceil_div(share.whole, programs) + (share.left > 0)),
    )
    return (
        *copied(problem, (problem.n, problem.c, problem.h * problem.w), *_packed(problem)),
        main,
        *_added(problem, share, bm * bn),
    )


def _packed(problem):
    """The filters' sizes, if they are copied."""
    if problem.r * problem.s == 1 and problem.c * problem.dtype.itemsize % CHUNK == 0:
        return ()
    return ((problem.k, problem.c, problem.r * problem.s),)


def _added(problem, share, sums):
    """The Work of adding up parts of so many sums each, if there are any."""
    if not share.left or share.parts == 1:
        return ()
    block, at_once = ADD.kwargs["BLOCK"], ADD.kwargs["BLOCK_S"]
    fetched = block * (4 * share.parts + problem.dtype.itemsize)
    written = share.left * sums * problem.dtype.itemsize
    steps = 1 + ceil_div(share.parts, at_once)
    return (Work(share.left * sums // block, 128, float(block * share.parts), "ieee", fetched, written, steps),)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work, reads_taps=True)
