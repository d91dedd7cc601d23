"""GEMV, naive: a thread per row, one column after the other.

Neighbouring lanes read neighbouring rows, so where rows are contiguous a request touches 32 sectors, of which it uses 4 bytes
each, and the caches must keep the other 28 until they are needed. It reads contiguous columns well, but with a single load in
flight per thread. It is the baseline of the others.

Mirrors cuda_reference/gemv/naive.cuh.
"""

import functools

from ..design import Design
from .parts.row_tile import interpreted, launches, tile, work


def configs(problem, target):
    if not target.is_gpu:
        yield interpreted(problem, target, 1024, 8)
    for threads in (128, target.warp_size):
        yield tile(problem, target, threads, 1, num_warps=threads // target.warp_size)


DESIGN = Design(
    configs=configs,
    launches=functools.partial(launches, vector=False),
    work=functools.partial(work, vector=False),
)
