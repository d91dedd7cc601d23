"""implicit_gemm in fp32 on CUDA cores (Gluon): outer products in registers, of slices that cp.async copies as they lie.

Rows of the product are pixels, its columns output channels, and its K axis are columns (r, s, c) of the filters, whose channels
are in whole chunks of 16 bytes, as a pixel's are (language/channels_last.py copies what lies otherwise). A slice is BLOCK_K of
that axis, of one tap or of several: a thread copies the same chunk of it for some pixels and some filters, and counts (r, s, c)
on from slice to slice, without divisions. Padding is a copy of zeros. A thread reads 4 quads for 64 multiply-adds, without bank
conflicts, as matmul/cuda_cores.py says.

Where there are few tiles, SPLIT_K programs share one, and the last of them to arrive adds their sums in order.

Mirrors the FFMA tiles of cuda_reference/conv2d/implicit_gemm.cuh.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from ...config import config_of
from ...integers import ceil_div
from ...language.activation import activated
from ...language.channels_last import are_in_chunks, copied, in_chunks
from ...language.convolution import Geometry, operands
from ...language.gluon_tile import CHUNK, Stages, accumulators, is_below, loads, needs_a_gpu, sum_of_slices, wide
from ...language.last_to_arrive import last_to_arrive, sum_in_order
from ...language.overlap import wait_for_earlier_kernels
from ...language.renamed import copy_async
from ...language.structs import Filters, Images, Vector
from ...language.tiles import grouped_tile
from ...launch import TritonLaunch
from ...operations.conv2d.chunks import padded
from ...operations.conv2d.work import of_product
from ...problem import LARGEST_TILE
from ...workspace import counters, partial_sums
from .columns import next_slice
from .slices import WAVES, count_tiles, sizes, splits

TILES = (  # BLOCK_M, BLOCK_N, BLOCK_K: floats that fill all banks, num_warps, num_stages
    (128, 128, 32, 8, 3),
    (128, 64, 32, 4, 3),
    (64, 128, 32, 4, 3),
    (64, 64, 32, 2, 3),
    (64, 64, 32, 4, 3),
)
LARGEST = 2**31 - LARGEST_TILE
ROOMY = 255  # registers of a thread: left alone, ptxas may spill for one more block on an SM


class Columns(NamedTuple):
    """The filters' columns (r, s, c): `channels` of a tap, in whole chunks; how many slices there are, and those of a split."""

    channels: Any
    slices: Any
    slices_per_split: Any
    SPLIT_K: Any
    GROUP_M: Any


class After(NamedTuple):
    """Constants: the layout whose lanes lie along what is contiguous in the result, and the activation."""

    OUT: Any
    ACTIVATION: Any


class Tile(NamedTuple):
    """A tile's pixels and filters: offsets of their first tap and channel, and its place in the image; how far the next slice's
    columns are."""

    input: Any
    weight: Any
    g: Any
    channels: Any
    of_pixel: Any
    of_filter: Any
    h: Any
    w: Any
    step: Any


@gluon.jit
def _copy_slice(pixels, filters, at, tile: Tile, CHUNK: gl.constexpr):
    """Columns (c, s, r) of the input for each pixel, and of each filter; with zeros beyond the last tap, and outside of the
    image. Triton does not see that chunks are whole."""
    c, s, r = at
    g = tile.g
    down = r * g.dilation_h
    right = s * g.dilation_w
    of_input = down * tile.input.h + right * tile.input.w + c
    of_weight = r * tile.weight.r + s * tile.weight.s + c
    exists = (r < g.R)[:, None]
    inside = exists & is_below(tile.h[None, :] + down[:, None], g.H) & is_below(tile.w[None, :] + right[:, None], g.W)
    exists = gl.max_constancy(exists, [CHUNK, 1])
    inside = gl.max_constancy(inside, [CHUNK, 1])
    _copy(pixels, tile.input.ptr, of_input, tile.of_pixel, inside, CHUNK)
    _copy(filters, tile.weight.ptr, of_weight, tile.of_filter, exists, CHUNK)


@gluon.jit
def _copy(place, ptr, down, across, inside, CHUNK: gl.constexpr):
    down = gl.max_contiguous(gl.multiple_of(down[:, None], [CHUNK, 1]), [CHUNK, 1])
    copy_async(place, ptr + (down + gl.multiple_of(across[None, :], [CHUNK, 1])), mask=inside)


@gluon.jit
def _next_slice(at, tile: Tile):
    return next_slice(at, tile.step, tile.g.S, tile.channels)


@gluon.jit
def _cuda_cores_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, residual: Images, parts, counters, g: Geometry,
    columns: Columns, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, after: After, stages: Stages,
):  # fmt: skip
    """bias and residual may be None. Where there are no splits, parts and counters are."""
    wait_for_earlier_kernels()
    ACC: gl.constexpr = stages.ACC
    LOAD: gl.constexpr = stages.LOAD
    SPLIT_K: gl.constexpr = columns.SPLIT_K
    pixels = gl.allocate_shared_memory(gl.float32, [stages.STAGES, BLOCK_K, BLOCK_M], stages.SHARED)
    filters = gl.allocate_shared_memory(gl.float32, [stages.STAGES, BLOCK_K, BLOCK_N], stages.SHARED)
    count = g.N * g.P * g.Q
    tiles_m = gl.cdiv(count, BLOCK_M)
    tiles_n = gl.cdiv(g.K, BLOCK_N)
    split = gl.program_id(0) // (tiles_m * tiles_n)
    index = gl.program_id(0) % (tiles_m * tiles_n)
    tile_m, tile_n = grouped_tile(index, tiles_m, tiles_n, columns.GROUP_M)

    # Past the last pixel and filter comes the last one again: its sums are not stored.
    pixel = gl.minimum(tile_m * BLOCK_M + gl.arange(0, BLOCK_M, gl.SliceLayout(0, LOAD)), count - 1)
    image = pixel // g.Q // g.P
    h0 = pixel // g.Q % g.P * g.step_h - g.padding_h
    w0 = pixel % g.Q * g.step_w - g.padding_w
    of_pixel = image * input.n + h0 * input.h + w0 * input.w
    of_filter = gl.minimum(tile_n * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, LOAD)), g.K - 1) * weight.k

    channels = columns.channels
    first = split * columns.slices_per_split
    column = first * BLOCK_K + gl.arange(0, BLOCK_K, gl.SliceLayout(1, LOAD))
    c = column % channels
    s = column // channels % g.S
    r = column // channels // g.S
    step = BLOCK_K % channels, BLOCK_K // channels % g.S, BLOCK_K // channels // g.S
    own = gl.minimum(columns.slices - first, columns.slices_per_split)
    tile = Tile(input, weight, g, channels, of_pixel, of_filter, h0, w0, step)
    acc = sum_of_slices(pixels, filters, own, (c, s, r), _copy_slice, _next_slice, tile, stages)
    async_copy.wait_group(0)

    if SPLIT_K == 1:
        _store(acc, bias, residual, out, tile_m * BLOCK_M, tile_n * BLOCK_N, count, g, after)
    else:
        within = gl.arange(0, BLOCK_M, gl.SliceLayout(1, ACC))[:, None] * BLOCK_N
        within = within + gl.arange(0, BLOCK_N, gl.SliceLayout(0, ACC))[None, :]
        SIZE: gl.constexpr = BLOCK_M * BLOCK_N
        place = parts + gl.cast(index, gl.int64) * (SPLIT_K * SIZE) + within
        gl.store(place + split * SIZE, acc)
        if last_to_arrive(counters + index, SPLIT_K):
            acc = sum_in_order(place, SIZE, SPLIT_K, 2)
            _store(acc, bias, residual, out, tile_m * BLOCK_M, tile_n * BLOCK_N, count, g, after)


@gluon.jit
def _store(acc, bias, residual, out: Images, row, col, count, g, after: After):
    """The activation of the sums of the pixels and channels that there are, plus bias and residual, if there are any."""
    OUT: gl.constexpr = after.OUT
    BLOCK_M: gl.constexpr = acc.shape[0]
    BLOCK_N: gl.constexpr = acc.shape[1]
    acc = gl.convert_layout(acc, OUT)
    pixel = row + gl.arange(0, BLOCK_M, gl.SliceLayout(1, OUT))
    k = col + gl.arange(0, BLOCK_N, gl.SliceLayout(0, OUT))
    if bias is not None:
        acc += gl.load(bias.ptr + k * bias.step, mask=k < g.K, other=0)[None, :]
    inside = (pixel < count)[:, None] & (k < g.K)[None, :]
    pixel = wide(pixel, True)  # the caller's result may have any strides
    if residual is not None:
        acc += gl.load(residual.ptr + _places(residual, pixel, k, g), mask=inside, other=0)
    acc = activated(acc, after.ACTIVATION, False)
    gl.store(out.ptr + _places(out, pixel, k, g), acc, mask=inside)


@gluon.jit
def _places(images: Images, pixel, k, g):
    of_pixel = pixel // g.Q // g.P * images.n + pixel // g.Q % g.P * images.h + pixel % g.Q * images.w
    return of_pixel[:, None] + (wide(k, True) * images.c)[None, :]


def configs(problem, target):
    """Each tile in each number of splits, where the problem and the GPU have such tiles; the interpreter has none."""
    lacking = needs_a_gpu(target) or target.lacks("cp.async", 80)
    if lacking or problem.precision != "ieee" or problem.groups != 1 or not 0 < _most(problem) < LARGEST:
        return
    for block_m, block_n, block_k, num_warps, stages in TILES:
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
        if (block_m + block_n) * block_k * 4 * stages > target.shared_per_block:
            continue
        tiles, slices = count_tiles(problem, tile), count_slices(problem, tile)
        for split_k in splits(tiles, block_m * block_n, slices, target.sms * WAVES, target):
            yield config_of(tile | {"SPLIT_K": split_k, "GROUP_M": 8}, num_warps, stages, ROOMY)


def _most(problem):
    """Elements of the copy of an operand, or pixels of the result: what the kernel counts in 32 bits. 0 without channels."""
    channels = padded(problem.c, problem.dtype.itemsize)
    images, filters = problem.n * problem.h * problem.w, problem.k * problem.r * problem.s
    return channels and max(images * channels, filters * channels, problem.n * problem.p * problem.q)


def _suits(t):
    """Whether the operand is read where it is."""
    return are_in_chunks(t) and sum((size - 1) * stride for size, stride in zip(t.shape, t.stride())) < LARGEST


def count_slices(problem, tile):
    columns = problem.r * problem.s * padded(problem.c, problem.dtype.itemsize)
    return ceil_div(columns, tile["BLOCK_K"])


def launches(problem, config, input, weight, bias, out, residual):
    (input, weight), copies = in_chunks((input, _suits), (weight, _suits))
    yield from copies
    tile, split_k = config.kwargs, config.kwargs["SPLIT_K"]
    tiles, slices = count_tiles(problem, tile), count_slices(problem, tile)
    sums = arrivals = None
    if split_k > 1:
        sums = partial_sums(split_k, tiles * tile["BLOCK_M"] * tile["BLOCK_N"], out)
        arrivals = counters(tiles, out)
    acc = accumulators(config)
    along_pixels = gl.BlockedLayout([1, 1], [32, 1], [1, config.num_warps], [0, 1])
    layouts = acc, loads(config, tile["BLOCK_M"], along_k=True, width=CHUNK), gl.SwizzledSharedLayout(4, 4, 8, [0, 1])
    constants = {
        "stages": Stages(*map(gl.constexpr, (config.num_stages, *layouts, CHUNK))),
        "after": After(gl.constexpr(along_pixels if out.stride(3) < out.stride(1) else acc), gl.constexpr(problem.activation)),
    }
    structs = *operands(input, weight, bias, out), Images.of(residual), sums, arrivals, Geometry.of(problem)
    order = map(gl.constexpr, (split_k, tile["GROUP_M"]))
    columns = Columns(padded(problem.c, problem.dtype.itemsize), slices, ceil_div(slices, split_k), *order)
    yield TritonLaunch(_cuda_cores_kernel, (tiles * split_k,), config, *structs, columns, **constants)


def work(problem, config, target):
    tile, (m, n, _) = config.kwargs, sizes(problem)
    block_m, block_n, block_k = shape = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
    given = count_slices(problem, tile), tile["SPLIT_K"], (block_m + block_n) * block_k * problem.dtype.itemsize
    of_input, taps = (problem.n, problem.c, problem.h * problem.w), problem.r * problem.s
    of_filters = () if taps == 1 and problem.c % CHUNK == 0 else ((problem.k, problem.c, taps),)
    main = of_product(problem, m, n, shape, *given, "ieee", 32 * config.num_warps, config.num_stages)
    return *copied(problem, of_input, *of_filters), main
