"""implicit_gemm in fp32 and tf32 (Gluon): operands go to registers from slices that cp.async copies as they lie.

Both operands lie across the reduction: a row of shared memory for each position, of the channels of grad_output, and of columns
(r, s, c), whose channels are in whole chunks of 16 bytes. The positions that a thread copies are counted on from slice to
slice, without divisions. Programs share the tiles evenly (pieces.py), and a second kernel adds up their parts.

fp32 is multiplied on CUDA cores, as outer products: a thread reads 4 quads for 64 multiply-adds. tf32 is multiplied on tensor
cores by mma.sync, because wgmma reads tf32 along the reduction only: for 32 x 64 sums of a warp a thread reads 24 words of 8
positions, rounds them, and has 16 products of 16 x 8 x 8.

Mirrors cuda_reference/conv2d_weight/parts/cuda_cores.cuh (fp32) and cuda_reference/conv2d_weight/parts/tensor_cores.cuh (tf32).
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from ...analysis.occupancy import occupancy
from ...config import config_of
from ...integers import ceil_div
from ...language.channels_last import are_in_chunks, copied, in_chunks
from ...language.convolution import Geometry
from ...language.gluon_tile import CHUNK, PLAIN, Stages, accumulators, is_below, needs_a_gpu, span, sum_of_slices, wide
from ...language.overlap import wait_for_earlier_kernels
from ...language.renamed import barrier, copy_async
from ...language.shared_walk import Shares, count_pieces, piece_of
from ...language.structs import Filters, Images
from ...launch import TritonLaunch
from ...operations.conv2d_weight.bands import bands_and_tiles
from ...operations.conv2d_weight.pieces import cut
from ...operations.conv2d_weight.work import of_pieces
from ...problem import needs_wide_offsets
from .added_parts import added, addition, workspace
from .positions import Positions, advance, channels_from, moved, positions

TILES = {  # BLOCK_M, BLOCK_N, BLOCK_L, num_warps, num_stages, registers of a thread
    "ieee": (
        (128, 128, 32, 8, 2, 128),
        (64, 128, 32, 4, 2, 128),
        (128, 64, 32, 4, 2, 128),
        (64, 64, 32, 2, 2, 160),
    ),
    "tf32": (
        (128, 128, 32, 8, 3, 128),
        (128, 128, 32, 4, 3, 255),  # warps of 64 x 64 sums, which read two thirds as much of shared memory as those of 32 x 64
        (64, 128, 32, 4, 3, 168),
        (128, 64, 32, 4, 3, 168),
        (64, 64, 32, 4, 3, 128),
    ),
}
# Slices of a piece (pieces.py). A part of the sums takes 4 us, as 128 x 128 x 32 products in fp32. In tf32 these should take
# about 1, with shared memory as the limit: 1024 accesses of 128 bytes.
LEAST = {"ieee": 2, "tf32": 8}
ROOMY = 255  # registers of a thread, where ptxas spills at 128
# For mma.sync a warp reads 8 neighbouring channels of 4 positions, whose rows all begin at the same bank.
SWIZZLED = gl.SwizzledSharedLayout(vec=8, per_phase=1, max_phase=4, order=[1, 0])


class Columns(NamedTuple):
    """Where columns of the weight read: the place of their tap, whether there is such a tap, and their inputs' offsets from
    those of the first tap and channel."""

    down: Any
    right: Any
    exists: Any
    offsets: Any


class Tile(NamedTuple):
    """A tile's rows, as offsets of grad_output's channels, and its Columns; how far the next slice's positions are, what the
    ends of a row and of an image add, and where these are."""

    input: Any
    grad: Any
    g: Any
    rows: Any
    columns: Any
    step: Any
    of_row: Any
    of_image: Any
    end_h: Any
    end_w: Any


@gluon.jit
def _place(column, g, CHUNK: gl.constexpr):
    """(tap, its row and column, channel) of columns (r, s, c), whose channels are in whole chunks."""
    chunks = gl.cdiv(g.C, CHUNK)
    chunk = column // CHUNK
    tap = chunk // chunks
    return tap, tap // g.S, tap % g.S, chunk % chunks * CHUNK + column % CHUNK


@gluon.jit
def _columns(first, input, g, BLOCK_N: gl.constexpr, CHUNK: gl.constexpr, LAYOUT: gl.constexpr, WIDE: gl.constexpr):
    column = first + gl.arange(0, BLOCK_N, LAYOUT)
    tap, r, s, c = _place(column, g, CHUNK)
    down = r * g.dilation_h
    right = s * g.dilation_w
    offsets = wide(down, WIDE) * input.h + wide(right, WIDE) * input.w + c
    return Columns(down, right, tap < g.R * g.S, offsets)


@gluon.jit
def _copy(tile, ptr, rows, columns, inside, CHUNK: gl.constexpr):
    """A row for each position, with zeros where it is not `inside`. Triton does not see that chunks are whole."""
    rows = gl.multiple_of(rows[:, None], [1, CHUNK])
    columns = gl.max_contiguous(gl.multiple_of(columns[None, :], [1, CHUNK]), [1, CHUNK])
    copy_async(tile, ptr + (rows + columns), mask=inside)


@gluon.jit
def _copy_slice(grads, inputs, at: Positions, tile: Tile, CHUNK: gl.constexpr):
    """The slice of grad_output at positions `at`, and that of inputs."""
    columns = tile.columns
    exists = (at.image < tile.g.N)[:, None]
    _copy(grads, tile.grad.ptr, at.grad, tile.rows, exists, CHUNK)
    inside = exists & columns.exists[None, :]
    inside = inside & is_below(at.h[:, None] + columns.down[None, :], tile.g.H)
    inside = inside & is_below(at.w[:, None] + columns.right[None, :], tile.g.W)
    _copy(inputs, tile.input.ptr, at.input, columns.offsets, inside, CHUNK)


@gluon.jit
def _next_slice(at: Positions, tile: Tile):
    at = moved(at, tile.step, True)
    at = moved(at, tile.of_row, at.w >= tile.end_w)
    return moved(at, tile.of_image, at.h >= tile.end_h)


@gluon.jit
def _register_products_kernel(
    input: Images, grad: Images, out: Filters, parts, g: Geometry, cut: Shares, most,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_L: gl.constexpr, stages: Stages, WIDE: gl.constexpr,
):  # fmt: skip
    """parts: (tiles left, most parts of a tile, BLOCK_M, BLOCK_N), or None if all tiles are whole."""
    wait_for_earlier_kernels()
    CHUNK: gl.constexpr = stages.CHUNK
    ACC: gl.constexpr = stages.ACC
    LOAD: gl.constexpr = stages.LOAD
    grads = gl.allocate_shared_memory(gl.float32, [stages.STAGES, BLOCK_L, BLOCK_M], stages.SHARED)
    inputs = gl.allocate_shared_memory(gl.float32, [stages.STAGES, BLOCK_L, BLOCK_N], stages.SHARED)
    tiles_m = gl.cdiv(g.K, BLOCK_M)
    step, of_row, of_image = advance(input, grad, g, BLOCK_L, WIDE)
    end_h = g.P * g.step_h - g.padding_h
    end_w = g.Q * g.step_w - g.padding_w
    program = gl.program_id(0)
    whole, pieces = count_pieces(program, gl.num_programs(0), cut)
    for index in range(pieces):
        number, first, count, part = piece_of(index, whole, program, gl.num_programs(0), cut)
        row = number % tiles_m * BLOCK_M
        col = number // tiles_m * BLOCK_N
        rows = channels_from(row, gl.arange(0, BLOCK_M, gl.SliceLayout(0, LOAD)), g.K, CHUNK)
        columns = _columns(col, input, g, BLOCK_N, CHUNK, gl.SliceLayout(0, LOAD), WIDE)
        at = positions(first, input, grad, g, BLOCK_L, gl.SliceLayout(1, LOAD), WIDE)
        tile = Tile(input, grad, g, rows, columns, step, of_row, of_image, end_h, end_w)
        barrier()  # nobody reads the slices of the piece before any more
        acc = sum_of_slices(grads, inputs, count, at, _copy_slice, _next_slice, tile, stages)
        if parts is None:
            _store(acc, out, row, col, g, CHUNK, WIDE)
        else:
            if count < cut.slices:
                slot = (number - cut.whole) * most + part
                within_rows = gl.arange(0, BLOCK_M, gl.SliceLayout(1, ACC))
                within = within_rows[:, None] * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, ACC))[None, :]
                gl.store(parts + slot.to(gl.int64) * (BLOCK_M * BLOCK_N) + within, acc)
            else:
                _store(acc, out, row, col, g, CHUNK, WIDE)
    async_copy.wait_group(0)


@gluon.jit
def _store(acc, out, row, col, g, CHUNK: gl.constexpr, WIDE: gl.constexpr):
    """The sums to the weight, where it has these rows and columns."""
    ACC: gl.constexpr = acc.type.layout
    k = span(row, acc.shape[0], gl.SliceLayout(1, ACC), WIDE)
    tap, r, s, c = _place(col + gl.arange(0, acc.shape[1], gl.SliceLayout(0, ACC)), g, CHUNK)
    filters = wide(r, WIDE) * out.r + wide(s, WIDE) * out.s + wide(c, WIDE) * out.c
    inside = (k < g.K)[:, None] & ((c < g.C) & (tap < g.R * g.S))[None, :]
    gl.store(out.ptr + (k[:, None] * out.k + filters[None, :]), acc, mask=inside)


def _fits(problem, target):
    """Whether the problem and the GPU have such tiles; the interpreter has none."""
    lacking = needs_a_gpu(target) or target.lacks("cp.async", 80)
    return not lacking and problem.precision in TILES and problem.groups == 1 and problem.terms < 2**31 - 2**10


def _spills(problem, target):
    """Whether ptxas does so at 128 registers: with offsets of 64 bits, on Blackwell, and where rounding to tf32 takes several
    instructions."""
    return problem.wide or target.arch >= 100 or (problem.precision == "tf32" and target.arch < 90)


def configs(problem, target):
    """Each tile on as many programs as the GPU holds, and on half of them, which have half as many sums to add."""
    if not _fits(problem, target):
        return
    for block_m, block_n, block_l, num_warps, stages, registers in TILES[problem.precision]:
        registers = ROOMY if _spills(problem, target) else registers
        shared = stages * block_l * (block_m + block_n) * 4
        held = max(1, occupancy(target, 32 * num_warps, registers, shared).blocks) * target.sms
        for programs in (held, held // 2):
            numbers = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_L": block_l, "PROGRAMS": programs}
            yield config_of(numbers, num_warps, stages, registers)


def bands_and_cut(problem, config):
    numbers = config.kwargs
    bands, tiles = bands_and_tiles(problem, numbers["BLOCK_M"], numbers["BLOCK_N"], CHUNK)
    return bands, cut(tiles, max(1, ceil_div(problem.terms, numbers["BLOCK_L"])), numbers["PROGRAMS"], LEAST[problem.precision])


def _stages(problem, config):
    """The Stages of the kernel. In tf32 there are two warps side by side, and as many rows of them as that leaves."""
    copies, tf32 = gl.BlockedLayout([1, CHUNK], [4, 8], [config.num_warps, 1], [1, 0]), problem.precision == "tf32"
    acc = gl.NVMMADistributedLayout([2, 0], [config.num_warps // 2, 2], [16, 8]) if tf32 else accumulators(config)
    return Stages(*map(gl.constexpr, (config.num_stages, acc, copies, SWIZZLED if tf32 else PLAIN, CHUNK, tf32)))


def launches(problem, config, input, grad_output, out):
    (input, grad_output), copies = in_chunks((input, are_in_chunks), (grad_output, are_in_chunks))
    yield from copies
    numbers, (bands, share) = config.kwargs, bands_and_cut(problem, config)
    block_m, block_n = numbers["BLOCK_M"], numbers["BLOCK_N"]
    parts = workspace(share, block_m * block_n, out)
    operands = Images.of(input), Images.of(grad_output), Filters.of(out), parts
    numbers = Geometry.of(problem), Shares.of(share), share.parts
    wide = problem.wide or needs_wide_offsets(input, grad_output)  # of the copies, which have zeros
    constants = {"stages": _stages(problem, config), "WIDE": wide}
    yield TritonLaunch(_register_products_kernel, (share.blocks,), config, *operands, *numbers, **constants)
    yield from addition(problem, bands, share, (block_m, block_n, CHUNK), parts, out)


def work(problem, config, target):
    numbers, (_, share) = config.kwargs, bands_and_cut(problem, config)
    bm, bn, bl = numbers["BLOCK_M"], numbers["BLOCK_N"], numbers["BLOCK_L"]
    main = of_pieces(problem, share, (bm, bn, bl), 32 * config.num_warps, problem.precision, config.num_stages, config.maxnreg)
    of_input, of_grad = (problem.n, problem.c, problem.h * problem.w), (problem.n, problem.k, problem.p * problem.q)
    return *copied(problem, of_input, of_grad), main, *added(problem, share, bm * bn)
