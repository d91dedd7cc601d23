"""GEMV, a block per row: `vectorized` with all warps of a block on one row.

With fewer rows than the GPU has warps, a warp per row leaves SMs with little in flight: M rows of 4 vectors a lane keep 2 KB *
M in flight, where 3.4 MB are needed. A block of W warps keeps W times that. The price is a reduction across warps, through W
words of shared memory and a barrier, once a row.

The kernel is parts/row_tile.py. Mirrors cuda_reference/gemv/block_per_row.cuh.
"""

from ..design import Design
from ..operations.gemv.shapes import BLOCK, UNROLL
from .parts.row_tile import interpreted, launches, tile, work


def configs(problem, target):
    if not target.is_gpu:
        yield interpreted(problem, target, 512, 256)
    for threads in (BLOCK // 2, BLOCK):
        for unroll in (UNROLL, UNROLL // 2):
            yield tile(problem, target, 1, threads, unroll, threads // target.warp_size)


DESIGN = Design(configs=configs, launches=launches, work=work)
