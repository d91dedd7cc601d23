"""GEMV, a warp per row: the lanes of a warp walk one row of A together and their partial sums are reduced in the warp.

Neighbouring lanes read neighbouring elements, so a request of 32 lanes touches 4 sectors of fp32 (a thread per row would
touch 32). The matrix is read once, x comes from L1 for all but the first row; 2 FLOP per element keep this bound by bandwidth
at any size. Four steps are in flight, 16 bytes a lane (Little's law: 4.8 TB/s at 700 ns need 3.4 MB in flight, 12 bytes per
thread of a full GPU).

Mirrors cuda_reference/gemv/warp_per_row.cuh, the seed's design for N = 32.
"""

import functools

from ..design import Design
from .parts.row_tile import interpreted, launches, tile, work


def configs(problem, target):
    """One warp per row of the tile, which takes one or four steps of its row at once."""
    if not target.is_gpu:
        yield interpreted(problem, target, 1024, 512)
    for unroll in (1, 4):
        for warps in (4, 8):
            yield tile(problem, target, warps, target.warp_size, unroll, warps)


DESIGN = Design(
    configs=configs,
    launches=functools.partial(launches, vector=False),
    work=functools.partial(work, vector=False),
)
