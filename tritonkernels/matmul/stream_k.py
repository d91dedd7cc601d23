"""Matrix product, stream-K (tl.dot): a program per SM, each with the same number of slices of K to multiply.

With a program per tile the last wave is rarely full: 144 tiles on 132 SMs take two waves, and the second keeps 12 SMs busy:
55 % of the machine. Here whole waves are computed tile by tile, neighbours at a time, which share their operands in L2. The
slices of the last WAVES form one line, cut into equal pieces, one for each program, so there is no tail. A program whose piece
covers a whole tile writes it; a tile that a cut goes through is written in parts, each to its program's place in a workspace,
and a second kernel adds them in the order of k. Nothing is ever added by atomics: the same bits every time.

WAVES = 1 shares the partial wave alone, so few tiles are cut. 2 is the paper's "two-tile" variant, a full wave with it: every
piece is at least a tile long, so no tile has more than two parts, where a last tile alone would have 132 to add up in turn. A
piece touches at most two cut tiles, one where it begins and one where it ends, so the workspace is 2 tiles per program.

Source: M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU
(2023). Mirrors tritonkernels/gemm/stream_k.py, the same for FP32 on CUDA cores.
"""

import itertools

from ..choice.work import streamed
from ..design import Design
from ..gemm.stream_k import Pieces, cut, next_part
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.matmul.work import of_streams
from .parts.arguments import WORKSPACES, Arithmetic, Epilogue, Sizes, matmul_arguments, stored_k
from .parts.epilogue import store_tile
from .parts.operands import packed_operands, refuses_operands
from .parts.space import block_tile, count_tiles, packings, packs_of, tile_configs, tiles_with_room
from .parts.tile import count_tiles_of, tile_corner, tile_product


@triton.jit
def _stream_kernel(
    a: Matrices, b: Matrices, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, pieces: Pieces,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Scales, c and bias may be None."""
    wait_for_earlier_kernels()
    whole = tl.program_id(0)
    program = whole.to(tl.int64)  # the line of slices may be longer than 2^31
    at = program * pieces.slices_per_program
    slices = (count_tiles_of(sizes, BLOCK_M, BLOCK_N) - pieces.whole_tiles).to(tl.int64) * pieces.slices_per_tile
    end = min(at + pieces.slices_per_program, slices)
    while (whole < pieces.whole_tiles) | (at < end):
        tile, first, stop, whole, at = next_part(pieces, whole, at, end)
        batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
        rows = span(row, BLOCK_M, how.WIDE)
        cols = span(col, BLOCK_N, how.WIDE)
        end_k = min(stop * BLOCK_K, sizes.K)
        acc = tile_product(a, b, batch, rows, cols, first * BLOCK_K, end_k, sizes, how, BLOCK_K)
        if (first == 0) & (stop == pieces.slices_per_tile):
            store_tile(acc, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue)
        else:  # a program's first slot is for a tile that another one began, its second for one that it begins
            slot = 2 * program + (first == 0).to(tl.int32)
            within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
            tl.store(pieces.ptr + slot * (BLOCK_M * BLOCK_N) + within, acc)


@triton.jit
def _add_parts_kernel(
    scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices, sizes: Sizes, epilogue: Epilogue,
    pieces: Pieces,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROWS: tl.constexpr, GROUP_M: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A program adds up ROWS rows of a tile; without operands few registers are enough."""
    wait_for_earlier_kernels()
    tile = tl.program_id(0) // (BLOCK_M // ROWS)  # of those in the line
    first_row = tl.program_id(0) % (BLOCK_M // ROWS) * ROWS
    line = tile.to(tl.int64) * pieces.slices_per_tile
    first = line // pieces.slices_per_program  # the programs that share the tile
    last = (line + pieces.slices_per_tile - 1) // pieces.slices_per_program
    if first < last:
        within = (first_row + tl.arange(0, ROWS))[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        place = pieces.ptr + first * (2 * BLOCK_M * BLOCK_N)
        acc = tl.load(place + BLOCK_M * BLOCK_N + within)
        for _ in range(first, last):
            place += 2 * BLOCK_M * BLOCK_N
            acc += tl.load(place + within)
        batch, row, col = tile_corner(pieces.whole_tiles + tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
        rows = span(row + first_row, ROWS, WIDE)
        cols = span(col, BLOCK_N, WIDE)
        store_tile(acc, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue)


ADD_ROWS = 16


def refuses(problem, target):
    if problem.precision == "fp64" and target.arch == 120:
        return f"no tile of doubles stays in the registers of {target.name}, whose CUDA cores multiply them"
    return refuses_operands(problem, target)


def configs(problem, target):
    """A program per SM, on the biggest tile: there is no tail for which to choose a smaller one. 2 WAVES where that is another
    cut than 1."""
    tiles, programs = tiles_with_room(problem, target), target.sms or 5
    tiles = [tile for tile in tiles if tile[3] == 8] or tiles
    for pack, waves in itertools.product(packings(problem, target), (2, 1)):
        for config in tile_configs(problem, target, tiles, GROUP_M=8, PROGRAMS=programs, WAVES=waves, **pack):
            count = count_tiles(problem, config.kwargs, problem.batch)
            if waves == 1 or streamed(count, programs, 1) < streamed(count, programs, 2):
                yield config


def launches(problem, config, a, b, c, bias, out, *scales):
    packs, a, b, are_tf32 = packed_operands(problem, config, a, b)
    yield from packs
    tile = config.kwargs
    tiles = count_tiles(problem, tile, out.shape[0])
    dtype = WORKSPACES[problem.accumulate]
    programs, shared, pieces = cut(tiles, stored_k(problem), tile, tile["WAVES"], dtype, out.device)
    arguments = matmul_arguments(problem, a, b, c, bias, out, *scales, batches=out.shape[0], are_tf32=are_tf32)
    yield TritonLaunch(_stream_kernel, (programs,), config, *arguments, pieces)
    if pieces.slices_per_program % pieces.slices_per_tile:  # a cut goes through a tile
        add = triton.Config({name: tile[name] for name in ("BLOCK_M", "BLOCK_N", "GROUP_M")}, num_warps=4, num_stages=1)
        grid = (shared * (tile["BLOCK_M"] // ADD_ROWS),)
        _, _, *result, how = arguments
        yield TritonLaunch(_add_parts_kernel, grid, add, *result, pieces, ROWS=ADD_ROWS, WIDE=how.WIDE.value)


def tile(config):
    return block_tile(config) | {"programs": config.kwargs["PROGRAMS"], "waves": config.kwargs["WAVES"]}


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=of_streams(tile, packs_of, ADD_ROWS))
