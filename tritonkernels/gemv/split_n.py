"""GEMV, N split over blocks: `block_per_row` with several blocks a row, for fewer rows than SMs.

Each block stores one partial sum; the last to arrive adds them up in a fixed order, so that the bits do not depend on which
block that is. It takes one launch, and a counter per row that is zero before and after (workspace.py). The cost: splits words
written and read, an atomic per block, and one round trip through L2 at the end, about a microsecond.

Mirrors cuda_reference/gemv/split_n.cuh.
"""

from ..design import Design
from ..integers import ceil_div
from ..language.last_to_arrive import last_to_arrive, sum_of_splits
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector, Vectors
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.gemv.shapes import UNROLL, counts_of_splits
from ..operations.gemv.vectors import cut
from ..workspace import counters, partial_sums
from .parts.row_tile import add_ends, add_step, store_rows, tile, walk_of, within, work, zero_sums
from .parts.structs import Addend, Rows, Splits, alpha_of, reading, results


@triton.jit
def _split_n_kernel(
    a: Matrices, x: Vectors, y: Addend, scale: Vector, out: Vectors, rows: Rows, splits: Splits, counters_ptr, alpha,
    BLOCK_M: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr, STREAMS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """`block_per_row` over the vectors of one split. Partial sums are (batch * M, splits), counters one a program of rows."""
    wait_for_earlier_kernels()
    walk = walk_of(a, x, rows, BLOCK_M, WIDE)
    split, count = tl.program_id(1), tl.num_programs(1)
    first = split * splits.share
    last = tl.minimum(first + splits.share, rows.vectors)
    BLOCK_N: tl.constexpr = LANES * rows.V
    partial = zero_sums(x, BLOCK_M, BLOCK_N)
    end = last * rows.V
    for n in range(first * rows.V, end, BLOCK_N * UNROLL):
        for step in tl.static_range(UNROLL):
            partial = add_step(partial, a, x, walk, n + step * BLOCK_N, end, STREAMS, WIDE)
    if first == 0:
        partial = add_ends(partial, a, x, rows, walk, STREAMS, WIDE)
    of_rows = splits.ptr + walk.index.to(tl.int64) * count
    tl.store(of_rows + split, tl.sum(partial, axis=1), mask=walk.valid)
    if last_to_arrive(counters_ptr + tl.program_id(0), count):
        sums = sum_of_splits(of_rows, walk.valid, count, 1, LANES)
        store_rows(sums, walk.valid, walk.batch, walk.m, y, scale, out, alpha)


def configs(problem, target):
    """The interpreter pays by the program: there one takes many rows."""
    rows = 1 if target.is_gpu else within(problem.rows, 512)
    for splits in counts_of_splits(problem, target) if target.is_gpu else (2, 3):
        for warps in (8, 4):
            lanes = target.warp_size * warps if target.is_gpu else within(problem.n, target.warp_size * warps)
            yield tile(problem, target, rows, lanes, UNROLL, warps, SPLITS=splits)


def launches(problem, config, a, x, y, scale, out):
    a, x, rows = reading(a, x, cut(a))
    programs, count = ceil_div(rows.count, config.kwargs["BLOCK_M"]), config.kwargs["SPLITS"]
    splits = Splits(partial_sums(count, rows.count, out), ceil_div(rows.vectors, count))
    arguments = a, x, *results(problem, y, scale, out), rows, splits, counters(programs, out), alpha_of(problem)
    yield TritonLaunch(_split_n_kernel, (programs, count), config, *arguments, WIDE=problem.wide)


DESIGN = Design(configs=configs, launches=launches, work=work)
