"""GEMV, a block per row: `vectorized` with all warps of a block on one row.

With fewer rows than the GPU has warps, a warp per row leaves SMs with little in flight: M rows of 4 vectors a lane keep 2 KB *
M in flight, where 3.4 MB are needed. A block of W warps keeps W times that. The price is a reduction across warps, through W
words of shared memory and a barrier, once a row.

Mirrors cuda_reference/gemv/block_per_row.cuh.
"""

from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector, Vectors
from ..language.triton import tl, triton
from ..operations.gemv.shapes import BLOCK, UNROLL
from .parts.row_tile import add_ends, add_step, interpreted, row_design, store_rows, tile, walk_of, zero_sums
from .parts.structs import Addend, Rows


@triton.jit
def _block_per_row_kernel(
    a: Matrices, x: Vectors, y: Addend, scale: Vector, out: Vectors, rows: Rows, alpha,
    BLOCK_M: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr, STREAMS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """All threads of a block walk a row."""
    wait_for_earlier_kernels()
    walk = walk_of(a, x, rows, BLOCK_M, WIDE)
    BLOCK_N: tl.constexpr = LANES * rows.V
    partial = zero_sums(x, BLOCK_M, BLOCK_N)
    end = rows.vectors * rows.V
    for n in range(0, end, BLOCK_N * UNROLL):
        for step in tl.static_range(UNROLL):  # so many loads are in flight, as none depends on another
            partial = add_step(partial, a, x, walk, n + step * BLOCK_N, end, STREAMS, WIDE)
    partial = add_ends(partial, a, x, rows, walk, STREAMS, WIDE)
    sums = tl.sum(partial, axis=1)  # by shuffles in a warp, then through shared memory
    store_rows(sums, walk.valid, walk.batch, walk.m, y, scale, out, alpha)


def configs(problem, target):
    if not target.is_gpu:
        yield interpreted(problem, target, 512, 256)
    for threads in (BLOCK // 2, BLOCK):
        for unroll in (UNROLL, UNROLL // 2):
            yield tile(problem, target, 1, threads, unroll, threads // target.warp_size)


DESIGN = row_design(_block_per_row_kernel, configs)
