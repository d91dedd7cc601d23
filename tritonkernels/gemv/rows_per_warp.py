"""GEMV, several rows per warp: 32 / R lanes walk a row by 128-bit loads, and the reduction stays inside them.

A row of N elements has N / V vectors. With fewer than 32 of them a warp per row leaves lanes idle and still pays five shuffles;
R = 32 V / N rows a warp keep every lane busy, and log2(32 / R) shuffles are enough. The rows of a warp are R pieces of memory,
each of whole sectors if rows are.

The kernel is parts/row_tile.py. Mirrors cuda_reference/gemv/rows_per_warp.cuh, the write-up's design for N <= 16.
"""

from ..design import Design
from ..operations.gemv.vectors import full_vector
from .parts.row_tile import interpreted, launches, tile, work

LANES = (1, 2, 4, 8, 16)


def configs(problem, target):
    """Two steps of two rows a lane keep four loads in flight."""
    if not target.is_gpu:
        yield interpreted(problem, target, 256, 16)
    vectors = -(-problem.n // full_vector(problem.a_dtype))
    for lanes in LANES:
        yield tile(problem, target, 2 * 4 * target.warp_size // lanes, lanes, 1 if lanes >= vectors else 2)


DESIGN = Design(configs=configs, launches=launches, work=work)
