"""conv2d_weight, warp-specialised (Gluon): a warpgroup copies slices, two others multiply them by wgmma.

In `implicit_gemm` the warps that multiply find the addresses of the next slice, too, and its tiles are 64 x 64. Here a program
divides its warps, as matmul's warp_specialized does. The producer's copy boxes of 64 positions by 64 channels: of grad_output
for each 64 rows of the tile, and of the input for each 64 columns, which are channels of one tap. Positions are counted on,
over the ends of rows and images, so every box is full, whatever the sizes. A consumer has up to 128 x 128 or 64 x 256 sums.

CUDA leaves the addresses to the copy engine (im2col maps). Triton 3.6's descriptors have only boxes of rows and columns: at the
end of a row they have pixels that no position of the tap reads, and a zero of grad_output times an infinity there is NaN. So
the producer is a whole warpgroup, whose threads copy 16 bytes each by cp.async: some 440 instructions a slice, while the
consumers' products of 128 x 256 take 1024 clocks.

Small groups share boxes, in bands (operations/conv2d_weight/bands.py). Which slices a program multiplies is pieces.py's. Of
tiles that several share the sums go to a workspace, and a second kernel adds them up, in the order of positions.

Mirrors cuda_reference/conv2d_weight/warp_specialized.cuh.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from ..config import config_of
from ..design import Design
from ..integers import ceil_div
from ..language.channels_last import are_in_chunks, copied, in_chunks
from ..language.convolution import Geometry
from ..language.gluon_tile import needs_a_gpu
from ..language.overlap import wait_for_earlier_kernels
from ..language.renamed import reinterpret
from ..language.shared_walk import Shares
from ..language.structs import Filters, Images
from ..language.triton import tl
from ..launch import TritonLaunch
from ..operations.conv2d.on_hopper import refuses_on_hopper
from ..operations.conv2d_weight.bands import BOX, Bands, bands_and_tiles, boxes_without_rows
from ..operations.conv2d_weight.pieces import SLICE, cut
from ..operations.conv2d_weight.work import of_pieces
from ..problem import needs_wide_offsets
from .parts.added_parts import added, addition, workspace
from .parts.specialists import Ring, Tile, consume, produce

CONSUMERS = 2
TILES = (  # rows, columns, STAGES: what fits in shared memory with the store of a result
    (128, 256, 4),
    (256, 128, 4),
    (128, 128, 6),
    (64, 256, 5),
    (64, 128, 8),
)


@gluon.jit
def _warp_specialized_kernel(
    input: Images, grad: Images, out: Filters, parts, g: Geometry, bands: Bands, cut: Shares, most, tile: Tile,
):  # fmt: skip
    """parts: (tiles left, most parts of a tile, M, N), or None if all tiles are whole."""
    wait_for_earlier_kernels()
    STAGES: gl.constexpr = tile.STAGES
    dtype: gl.constexpr = out.ptr.dtype.element_ty
    BOX: gl.constexpr = tile.BOX
    LAYOUT: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    grads = gl.allocate_shared_memory(dtype, [STAGES * (tile.M // BOX), BOX, BOX], LAYOUT)
    inputs = gl.allocate_shared_memory(dtype, [STAGES * (tile.N // BOX), BOX, BOX], LAYOUT)
    left = reinterpret(grads, dtype, [STAGES * tile.DOWN, BOX, tile.M // tile.DOWN], LAYOUT)
    right = reinterpret(inputs, dtype, [STAGES * tile.ACROSS, BOX, tile.N // tile.ACROSS], LAYOUT)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=2)  # consumers
    ring = Ring(grads, inputs, left, right, full, empty)
    gl.warp_specialize(
        [
            (consume, (0, out, parts, ring, g, bands, cut, most, tile)),
            (consume, (1, out, parts, ring, g, bands, cut, most, tile)),
            (produce, (input, grad, ring, g, bands, cut, tile)),
        ],
        [4, 4],
        [200, 104],
    )


def refuses(problem, target):
    if problem.terms >= 2**31 - SLICE:
        return f"it counts positions in 32 bits, and there are {problem.terms}"
    return refuses_on_hopper(problem, target, along=False) or needs_a_gpu(target)


def configs(problem, target):
    """Each tile on all SMs, and on half of them, which have half as many sums to add; none with boxes of no row."""
    for block_m, block_n, stages in TILES:
        if problem.groups > 1 and boxes_without_rows(problem, block_m):
            continue
        for programs in (target.sms, target.sms // 2):
            numbers = {"BLOCK_M": block_m, "BLOCK_N": block_n, "STAGES": stages}
            numbers |= {"CONSUMERS": CONSUMERS, "PROGRAMS": programs}
            yield config_of(numbers, num_warps=4, num_stages=1)


def bands_and_cut(problem, config):
    numbers = config.kwargs
    bands, tiles = bands_and_tiles(problem, numbers["BLOCK_M"], numbers["BLOCK_N"])
    return bands, cut(tiles, ceil_div(problem.terms, SLICE), numbers["PROGRAMS"])


def launches(problem, config, input, grad_output, out):
    (input, grad_output), copies = in_chunks((input, are_in_chunks), (grad_output, are_in_chunks))
    yield from copies
    wide = problem.wide or needs_wide_offsets(input, grad_output)  # of the copies, which have zeros
    numbers, (bands, share) = config.kwargs, bands_and_cut(problem, config)
    block_m, block_n = numbers["BLOCK_M"], numbers["BLOCK_N"]
    parts = workspace(share, block_m * block_n, out)
    down = 2 if block_m > BOX else 1
    tile = block_m, block_n, down, CONSUMERS // down, numbers["STAGES"], BOX, problem.groups > 1, wide
    yield TritonLaunch(
        _warp_specialized_kernel,
        (share.blocks,),
        config,
        Images.of(input),
        Images.of(grad_output),
        Filters.of(out),
        parts,
        Geometry.of(problem),
        bands,
        Shares.of(share),
        share.parts,
        Tile(*map(tl.constexpr, tile)),
    )
    yield from addition(problem, bands, share, (block_m, block_n, BOX), parts, out)


def work(problem, config, target):
    numbers, (_, share) = config.kwargs, bands_and_cut(problem, config)
    bm, bn = numbers["BLOCK_M"], numbers["BLOCK_N"]
    main = of_pieces(problem, share, (bm, bn, SLICE), 128 * CONSUMERS, problem.precision, numbers["STAGES"], 168)
    of_input, of_grad = (problem.n, problem.c, problem.h * problem.w), (problem.n, problem.k, problem.p * problem.q)
    return *copied(problem, of_input, of_grad), main, *added(problem, share, bm * bn)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
