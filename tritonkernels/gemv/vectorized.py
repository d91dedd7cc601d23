"""GEMV, vectorized: `warp_per_row` with 128-bit loads of A, and of x where its address allows.

A load instruction reads 512 bytes per warp instead of 128 (fp32; of fp16 and int8, 64 and 32), so a quarter of the instructions
keeps the same bytes in flight. Where the address or pitch of A's rows does not allow it, this is `warp_per_row`; elements
before the first 16-byte boundary and after the last are read separately.

The kernel is parts/row_tile.py. Mirrors cuda_reference/gemv/vectorized.cuh, the write-up's design for N >= 128.
"""

from ..design import Design
from ..operations.gemv.vectors import full_vector
from .parts.row_tile import interpreted, launches, tile, work


def configs(problem, target):
    """Several loads in flight a lane: steps along a long row, else several rows a warp."""
    if not target.is_gpu:
        yield interpreted(problem, target, 256, 32)
    steps = -(-problem.n // (target.warp_size * full_vector(problem.a_dtype)))
    space = ((4, 1), (2, 2), (1, 4)) if steps > 2 else ((1, 4), (2, 2))
    if steps >= 8 and problem.a_dtype.itemsize > 1:  # the x of a vector of int8 takes more registers
        space = ((8, 1), *space)
    for unroll, rows in space:
        yield tile(problem, target, 4 * rows, target.warp_size, unroll)


DESIGN = Design(configs=configs, launches=launches, work=work)
