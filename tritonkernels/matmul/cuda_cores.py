"""Matrix product of fp32 in IEEE arithmetic, cuda_cores (Gluon): outer products in registers, of slices that cp.async copies.

tl.dot of fp32 also multiplies on CUDA cores. But an operand that lies along K, as the weight of a linear layer does, is read
from shared memory with bank conflicts, or has to be packed first. Here the program defines where each float of a slice lies, so
that nothing is packed and no access has a conflict. An operand comes in one of three ways:

quads of rows   M or N is contiguous: 16 bytes a copy, row after row of k
quads of K      K is contiguous, and stays so in shared memory: 16 bytes a copy. The 32 floats of K of a row of A or column of B
                fill all banks. Its quad q lies at q ^ (index / 4 % 8), since the 8 lanes of a phase read 8 indices, 4 apart
single floats   quads are not aligned: 4 bytes a copy. What lies along K is transposed on the way: a warp copies 8 of K by 4
                indices, and quad q of row k lies at q ^ (k % 8); see gemm/conflict_free.py

All are read in quads: for 8 x 8 sums a thread reads 4 of them per 64 multiply-adds. With tiles of 128 x 128 88 to 92 % of the
instructions of the loop over slices are FFMA (sm_90). Two things keep the others few. No copy in the loop has a mask: the last
slice, which may exceed K, comes first, and past the last row or column comes the last one again, as those sums are not stored.
And a thread keeps an offset for each copy, not a pointer, which would take two registers: ptxas would spill.

K may be split, as in split_k.py. Mirrors cuda_reference/matmul/cuda_cores.cuh.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from ..config import config_of
from ..design import Design
from ..gemm.conflict_free import stored
from ..gemm.parts.gluon_tile import (
    Operand,
    Staging,
    accumulators,
    barrier,
    copy_async,
    distance,
    loads,
    multiply_add,
    needs_a_gpu,
    quads_inside,
    span,
)
from ..gemm.parts.splits import ALONE, counts_for, few_blocks, split_counts
from ..language.overlap import wait_for_earlier_kernels
from ..language.splits import last_to_arrive
from ..language.structs import Matrices, Vector
from ..language.tiles import multiple
from ..launch import TritonLaunch
from ..workspace import counters
from .parts.arguments import WORKSPACES, Arithmetic, Epilogue, Sizes, matmul_arguments
from .parts.epilogue import store_tile
from .parts.schemes import NO_FINER_THAN_IEEE, in_ieee
from .parts.space import block_tile, count_tiles, shared_bytes
from .parts.splits import Splits, added_up, first_of, range_of_k
from .parts.tile import tile_corner
from .parts.work import as_they_lie, of_splits
from .split_k import ADD_ROWS, ROOMY, addition_of_splits


class Quads(NamedTuple):
    """Constants: whether A comes in quads of rows, and B in quads of columns."""

    A: Any
    B: Any


@gluon.jit
def _offsets(x, first, BLOCK: gl.constexpr, BLOCK_K: gl.constexpr, LOAD: gl.constexpr, QUADS: gl.constexpr, WIDE: gl.constexpr):
    """(offsets of a slice of an Operand from `first` on, its ks)"""
    across = span(first, BLOCK, gl.SliceLayout(0, LOAD), WIDE)
    across = quads_inside(across, x.length) if QUADS else gl.minimum(across, x.length - 1)
    ks = span(0, BLOCK_K, gl.SliceLayout(1, LOAD), WIDE)[:, None]
    return across[None, :] * x.across + ks * x.k, ks


@gluon.jit
def _tile_product(
    a: Operand, b: Operand, row, col, length, how: Staging, quads: Quads,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    """The sum over the first `length` of K of the tile at (row, col)."""
    STAGES: gl.constexpr = how.STAGES
    a_offsets, a_ks = _offsets(a, row, BLOCK_M, BLOCK_K, how.LOAD_A, quads.A, WIDE)
    b_offsets, b_ks = _offsets(b, col, BLOCK_N, BLOCK_K, how.LOAD_B, quads.B, WIDE)
    a_shared = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK_K, BLOCK_M], how.SHARED_A)
    b_shared = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK_K, BLOCK_N], how.SHARED_B)
    slices = gl.cdiv(gl.maximum(length, 1), BLOCK_K)
    last = (slices - 1) * BLOCK_K
    copy_async(a_shared.index(0), a.ptr + distance(last, a.k, WIDE) + a_offsets, mask=a_ks < length - last)
    copy_async(b_shared.index(0), b.ptr + distance(last, b.k, WIDE) + b_offsets, mask=b_ks < length - last)
    async_copy.commit_group()
    a_ptr = a.ptr
    b_ptr = b.ptr
    for s in gl.static_range(1, STAGES - 1):
        a_ptrs = a_ptr + a_offsets  # outside of the branch: where K is 1 it is dead, and Triton 3.6 asks for their alignment
        b_ptrs = b_ptr + b_offsets
        if s < slices:
            copy_async(a_shared.index(s), a_ptrs)
            copy_async(b_shared.index(s), b_ptrs)
        async_copy.commit_group()  # of nothing where there is no slice, so that waits can count groups
        a_ptr += distance(BLOCK_K, a.k, WIDE)
        b_ptr += distance(BLOCK_K, b.k, WIDE)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, how.ACC)
    stage = 0  # holds the slice that is multiplied
    free = STAGES - 1  # held the one before
    for left in range(slices, 0, -1):
        async_copy.wait_group(STAGES - 2)  # this thread's part of the slice is there
        barrier()  # everybody's is, and nobody reads the one before any more
        a_ptrs = a_ptr + a_offsets
        b_ptrs = b_ptr + b_offsets
        if left >= STAGES:
            copy_async(a_shared.index(free), a_ptrs)
            copy_async(b_shared.index(free), b_ptrs)
        async_copy.commit_group()
        a_ptr += distance(BLOCK_K, a.k, WIDE)
        b_ptr += distance(BLOCK_K, b.k, WIDE)
        acc = multiply_add(acc, a_shared.index(stage), b_shared.index(stage))
        free = stage
        stage = stage + 1 if stage < STAGES - 1 else 0
    return acc


@gluon.jit
def _cuda_cores_kernel(
    a: Matrices, b: Matrices, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, splits: Splits, counters, staging: Staging, quads: Quads,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
):  # fmt: skip
    """Scales, c and bias may be None; so is splits where a program has all of K. counters: (TILES,) zeros that count finished
    splits; None: a second kernel adds them."""
    wait_for_earlier_kernels()
    tile = gl.program_id(0)
    split = gl.program_id(1)
    batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    first_k, end_k = range_of_k(splits, split, sizes.K)
    a_k = multiple(a.col, sizes.A_COL)
    b_k = multiple(b.row, sizes.B_ROW)
    a_ptr = a.ptr + batch * multiple(a.batch, sizes.A_BATCH) + distance(first_k, a_k, how.WIDE)
    b_ptr = b.ptr + batch * multiple(b.batch, sizes.B_BATCH) + distance(first_k, b_k, how.WIDE)
    a_part = Operand(a_ptr, a_k, multiple(a.row, sizes.A_ROW), sizes.M)
    b_part = Operand(b_ptr, b_k, multiple(b.col, sizes.B_COL), sizes.N)
    length = multiple(end_k - first_k, sizes.OF_K)
    acc = _tile_product(a_part, b_part, row, col, length, staging, quads, BLOCK_M, BLOCK_N, BLOCK_K, how.WIDE)
    OF_ROWS: gl.constexpr = gl.SliceLayout(1, acc.type.layout)
    OF_COLS: gl.constexpr = gl.SliceLayout(0, acc.type.layout)
    rows = span(row, BLOCK_M, OF_ROWS, how.WIDE)
    cols = span(col, BLOCK_N, OF_COLS, how.WIDE)
    if splits is None:
        store_tile(acc, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue)
    else:
        within = gl.arange(0, BLOCK_M, OF_ROWS)[:, None] * BLOCK_N + gl.arange(0, BLOCK_N, OF_COLS)[None, :]
        place = first_of(splits, tile, BLOCK_M, BLOCK_N) + within
        gl.store(place + split * (BLOCK_M * BLOCK_N), acc)
        if counters is not None:  # noqa: SIM102  known when this is compiled, unlike the other
            if last_to_arrive(counters + tile, splits.SPLIT_K):
                total = added_up(splits, place, BLOCK_M * BLOCK_N)
                store_tile(total, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue)


# (BLOCK_M, BLOCK_N, num_warps, num_stages): 8 x 8 sums a thread, then fewer
TILES = (
    (128, 128, 8, 3),
    (64, 128, 4, 3),
    (128, 64, 4, 3),
    (64, 64, 2, 3),
    (64, 64, 4, 4),
    (32, 128, 4, 4),
    (32, 64, 4, 4),
    (64, 32, 4, 4),
    (32, 32, 2, 4),
)
BLOCK_K = 32  # floats that fill all banks


def refuses(problem, target):
    lacking = needs_a_gpu(target) or target.lacks("cp.async", 80)
    if lacking or problem.precision in NO_FINER_THAN_IEEE:
        return lacking
    return f"it multiplies float32 on CUDA cores, and has no {problem.precision}"


def _tiles(problem, target):
    """(numbers, num_warps, num_stages) of the tiles that fit, without those of which more than half would be for nothing."""
    for m, n, num_warps, stages in TILES:
        fits = shared_bytes((m, n, 4 * BLOCK_K, num_warps, stages)) <= target.shared_per_block
        if fits and m < 2 * max(32, problem.m) and n < 2 * max(32, problem.n):
            yield {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": BLOCK_K, "GROUP_M": 8}, num_warps, stages


def configs(problem, target):
    """First without splits of K. With all registers: left alone, ptxas may spill in the loop for one more block on an SM."""
    tiles = [(*tile, count_tiles(problem, tile[0], problem.batch)) for tile in _tiles(problem, target)]
    for numbers, num_warps, stages, _ in tiles:
        yield config_of(numbers | {"SPLIT_K": 1}, num_warps, stages, ROOMY)
    powers = split_counts(min((count for *_, count in tiles), default=0), problem.k, target)
    for numbers, num_warps, stages, count in tiles:
        for splits in counts_for(count, powers, problem, BLOCK_K, target):
            if few_blocks(splits * count, target):
                yield config_of(numbers | {"SPLIT_K": splits}, num_warps, stages, ROOMY)


def _in_quads(t, along):
    """Whether all quads along rows (1) or K (2) of an operand (batch, rows, K) are aligned, of rows inside or outside."""
    others = [stride for dim, (size, stride) in enumerate(zip(t.shape, t.stride())) if dim != along and size > 1]
    whole = along == 2 or t.shape[1] % 4 == 0
    return whole and t.stride(along) == 1 and not any(x % 4 for x in others) and t.data_ptr() % 16 == 0


def _layouts(config, t, length):
    """(LOAD, SHARED, whether it comes in quads of rows) of an operand (batch, rows, K), with so many rows in a slice."""
    if _in_quads(t, 2):
        return loads(config, length, along_k=True, width=4), gl.SwizzledSharedLayout(4, 4, 8, [0, 1]), False
    quads = _in_quads(t, 1)
    along_k = not quads and t.stride(2) <= t.stride(1)
    return *stored(config, length, along_k, width=4 if quads else 1), quads


def launches(problem, config, a, b, c, bias, out):
    problem, numbers = in_ieee(problem), config.kwargs
    split_k, tiles = numbers["SPLIT_K"], count_tiles(problem, numbers, out.shape[0])
    splits = Splits.of(tiles, problem.k, config, WORKSPACES[problem.accumulate], out.device) if split_k > 1 else None
    last_adds = splits is not None and splits.ptr[:1].nbytes <= ALONE
    load_a, shared_a, a_quads = _layouts(config, a, numbers["BLOCK_M"])
    load_b, shared_b, b_quads = _layouts(config, b.mT, numbers["BLOCK_N"])
    staging = config.num_stages, accumulators(config, [4, 4], [1, 0]), load_a, load_b, shared_a, shared_b
    constants = Staging(*map(gl.constexpr, staging)), Quads(*map(gl.constexpr, (a_quads, b_quads)))
    arguments = matmul_arguments(problem, a, b, c, bias, out)
    zeros = counters(tiles, out) if last_adds else None
    yield TritonLaunch(_cuda_cores_kernel, (tiles, split_k), config, *arguments, splits, zeros, *constants)
    if splits is not None and not last_adds:
        yield addition_of_splits(config, splits, tiles, arguments[2:])


def tile(config):
    return block_tile(config) | {"splits": config.kwargs["SPLIT_K"]}


_OF_SPLITS = of_splits(tile, as_they_lie, ALONE, ADD_ROWS)


def work(problem, config, target):
    return _OF_SPLITS(in_ieee(problem), config, target)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work, tile=block_tile, reduced=in_ieee)
