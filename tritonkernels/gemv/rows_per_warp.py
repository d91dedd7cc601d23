"""GEMV, several rows per warp: 32 / R lanes walk a row by 128-bit loads, and the reduction stays inside them.

A row of N elements has N / V vectors. With fewer than 32 of them a warp per row leaves lanes idle and still pays five shuffles;
R = 32 V / N rows a warp keep every lane busy, and log2(32 / R) shuffles are enough. The rows of a warp are R pieces of memory,
each of whole sectors if rows are.

Mirrors cuda_reference/gemv/rows_per_warp.cuh, the write-up's design for N <= 16.
"""

from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector, Vectors
from ..language.triton import tl, triton
from ..operations.gemv.vectors import full_vector
from .parts.row_tile import add_ends, add_step, interpreted, row_design, store_rows, tile, walk_of, zero_sums
from .parts.structs import Addend, Rows

LANES = (1, 2, 4, 8, 16)


@triton.jit
def _rows_per_warp_kernel(
    a: Matrices, x: Vectors, y: Addend, scale: Vector, out: Vectors, rows: Rows, alpha,
    BLOCK_M: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr, STREAMS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """LANES lanes of a warp walk a row, so that a warp walks 32 / LANES rows at once."""
    wait_for_earlier_kernels()
    walk = walk_of(a, x, rows, BLOCK_M, WIDE)
    BLOCK_N: tl.constexpr = LANES * rows.V
    partial = zero_sums(x, BLOCK_M, BLOCK_N)
    end = rows.vectors * rows.V
    for n in range(0, end, BLOCK_N * UNROLL):
        for step in tl.static_range(UNROLL):  # so many loads are in flight, as none depends on another
            partial = add_step(partial, a, x, walk, n + step * BLOCK_N, end, STREAMS, WIDE)
    partial = add_ends(partial, a, x, rows, walk, STREAMS, WIDE)
    sums = tl.sum(partial, axis=1)  # by log2(LANES) shuffles
    store_rows(sums, walk.valid, walk.batch, walk.m, y, scale, out, alpha)


def configs(problem, target):
    """Two steps of two rows a lane keep four loads in flight."""
    if not target.is_gpu:
        yield interpreted(problem, target, 256, 16)
    vectors = -(-problem.n // full_vector(problem.a_dtype))
    for lanes in LANES:
        yield tile(problem, target, 2 * 4 * target.warp_size // lanes, lanes, 1 if lanes >= vectors else 2)


DESIGN = row_design(_rows_per_warp_kernel, configs)
