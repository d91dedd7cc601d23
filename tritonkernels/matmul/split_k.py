"""Matrix product, split-K (tl.dot): SPLIT_K programs share a tile, each sums its own range of K, and their sums are added up.

Where M and N are small and K is large there are fewer tiles than SMs: 256 x 256 x 65536 in tiles of 64 x 64 is 16 programs on
132 SMs. Splitting K gives every SM work at the price of SPLIT_K partial results, written and read once: 8 M N SPLIT_K bytes.

The partial sums go through a workspace and are added in the order of k, never by atomics: the same bits every time. The program
that adds them also runs the epilogue, so nothing is rounded before all of K is in. It is the last of the tile to finish: a
trip through L2 instead of a second launch of two microseconds. For many splits of a big tile one SM would read longer than
that, so a second kernel of many programs adds them.

Mirrors tritonkernels/gemm/split_k.py, the same for FP32 on CUDA cores.
"""

from ..design import Design
from ..integers import ceil_div
from ..language.last_to_arrive import last_to_arrive
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.gemm.split_counts import ALONE, at_once, counts_for, split_counts
from ..operations.matmul.work import of_splits
from ..workspace import counters
from .parts.arguments import WORKSPACES, Arithmetic, Epilogue, Sizes, matmul_arguments, stored_k
from .parts.epilogue import store_tile
from .parts.operands import ALONG_K, packed_operands, refuses_operands
from .parts.ranges_of_k import Splits, added_up, place_of, range_of_k
from .parts.space import (
    SPECIAL,
    TALL,
    block_tile,
    count_tiles,
    good_tiles,
    legal,
    packings,
    packs_of,
    sums_slices,
    tile_configs,
)
from .parts.tile import count_tiles_of, tile_corner, tile_product


@triton.jit
def _split_kernel(
    a: Matrices, b: Matrices, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, splits: Splits, counters,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Scales, c and bias may be None. counters: (TILES,) zeros that count finished splits; None: a second kernel adds them."""
    wait_for_earlier_kernels()
    tiles = count_tiles_of(sizes, BLOCK_M, BLOCK_N)
    tile = tl.program_id(0) % tiles
    split = tl.program_id(0) // tiles
    batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    rows = span(row, BLOCK_M, how.WIDE)
    cols = span(col, BLOCK_N, how.WIDE)
    first_k, end_k = range_of_k(splits, split, sizes.K)
    acc = tile_product(a, b, batch, rows, cols, first_k, end_k, sizes, how, BLOCK_K)
    place = place_of(splits, tile, 0, BLOCK_M, BLOCK_M, BLOCK_N)
    tl.store(place + split * (BLOCK_M * BLOCK_N), acc)
    adds = last_to_arrive(counters + tile, splits.SPLIT_K) if counters is not None else False
    if adds:
        total = added_up(splits, place, BLOCK_M * BLOCK_N)
        store_tile(total, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue)


@triton.jit
def _add_splits_kernel(
    scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices, sizes: Sizes, epilogue: Epilogue,
    splits: Splits,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROWS: tl.constexpr, GROUP_M: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A program adds up ROWS rows of a tile."""
    wait_for_earlier_kernels()
    tile = tl.program_id(0) // (BLOCK_M // ROWS)
    first_row = tl.program_id(0) % (BLOCK_M // ROWS) * ROWS
    batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
    rows = span(row + first_row, ROWS, WIDE)
    cols = span(col, BLOCK_N, WIDE)
    place = place_of(splits, tile, first_row, ROWS, BLOCK_M, BLOCK_N)
    total = added_up(splits, place, BLOCK_M * BLOCK_N)
    store_tile(total, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue)


ADD_ROWS = 4
ROOMY = 255  # registers: as many as a thread can have
FOR_FEW_COLUMNS = ((64, 32, 256, 4, 4), (64, 16, 256, 4, 4))  # space.py has those for few rows
# Where what a tile fetches counts more than adding its splits up
FOR_MUCH_K = {
    "fp16": ((64, 128, 128, 4, 6),),
    "bf16": ((64, 128, 128, 4, 6),),
    "tf32": TALL,
    "ieee": (
        (64, 32, 128, 4, 3),
        (32, 64, 128, 4, 3),
        (128, 32, 64, 4, 3),
        (64, 128, 64, 4, 3),
        (128, 64, 64, 4, 3),
        (128, 128, 64, 8, 4),
    ),
}


def split_tiles(problem, target):
    """Small tiles, the smallest that cover up to 64 rows and columns first."""
    by_mma = target.arch == 120 or (target.arch, problem.precision) == (100, "int8")
    turns = by_mma and problem.precision in ALONG_K  # B in registers, which leaves no room for 64 x 64 sums
    tiles = [tile for tile in good_tiles(problem, target) if tile[0] * tile[1] <= (32 if turns else 64) * 64]
    more = FOR_FEW_COLUMNS if problem.precision not in SPECIAL and not sums_slices(problem) else ()  # see numerics.FP8_SLICE
    if target.arch == 90 and not problem.wide:
        more += FOR_MUCH_K.get(problem.precision, ())
    tiles += [tile for tile in more if legal(tile, problem, target)]

    def wasteful(tile):
        covers = tile[0] >= min(64, problem.m) and tile[1] >= min(64, problem.n)
        return not covers, tile[0] * tile[1]

    return sorted(tiles, key=wasteful)


def configs(problem, target):
    tiles = split_tiles(problem, target)
    maxnreg = ROOMY if target.arch >= 100 else None  # left alone, ptxas spills there to fit one more block on an SM
    rows, columns = (max((tile[i] for tile in tiles), default=1) for i in (0, 1))
    powers = split_counts(problem.batch * ceil_div(problem.m, rows) * ceil_div(problem.n, columns), problem.k, target)
    tiles_of = {}  # by the number of splits
    for tile in tiles:
        count = problem.batch * ceil_div(problem.m, tile[0]) * ceil_div(problem.n, tile[1])
        for split_k in counts_for(count, powers, problem, tile[2] // problem.dtype.itemsize, target) or powers[:1]:
            tiles_of.setdefault(split_k, []).append(tile)
    for pack in packings(problem, target):
        for split_k in sorted(tiles_of):
            yield from tile_configs(problem, target, tiles_of[split_k], maxnreg, GROUP_M=8, SPLIT_K=split_k, **pack)


def launches(problem, config, a, b, c, bias, out, *scales):
    packs, a, b, are_tf32 = packed_operands(problem, config, a, b)
    yield from packs
    tile, tiles = config.kwargs, count_tiles(problem, config.kwargs, out.shape[0])
    splits = Splits.of(tiles, stored_k(problem), config, WORKSPACES[problem.accumulate], out.device)
    last_adds = splits.ptr[:1].nbytes <= ALONE
    arguments = matmul_arguments(problem, a, b, c, bias, out, *scales, batches=out.shape[0], are_tf32=are_tf32)
    zeros = counters(tiles, out) if last_adds else None
    yield TritonLaunch(_split_kernel, (tile["SPLIT_K"] * tiles,), config, *arguments, splits, zeros)
    if not last_adds:
        yield addition_of_splits(config, splits, tiles, arguments[2:])


def addition_of_splits(config, splits, tiles, arguments):
    """The launch that adds up the splits of so many tiles; the arguments are those of the product after its operands."""
    numbers = {name: config.kwargs[name] for name in ("BLOCK_M", "BLOCK_N", "GROUP_M")}
    add, grid = triton.Config(numbers, num_warps=4, num_stages=1), (tiles * (numbers["BLOCK_M"] // ADD_ROWS),)
    *result, how = arguments
    itemsize = splits.ptr.element_size()
    fitting = at_once(config.kwargs["SPLIT_K"], ADD_ROWS * numbers["BLOCK_N"], 32 * add.num_warps, itemsize)
    splits = splits._replace(AT_ONCE=tl.constexpr(fitting))
    return TritonLaunch(_add_splits_kernel, grid, add, *result, splits, ROWS=ADD_ROWS, WIDE=how.WIDE.value)


def tile(config):
    return block_tile(config) | {"splits": config.kwargs["SPLIT_K"]}


WORK = of_splits(tile, packs_of, ALONE, ADD_ROWS)
DESIGN = Design(refuses=refuses_operands, configs=configs, launches=launches, work=WORK)
