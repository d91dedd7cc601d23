"""GEMV, vectorized: `warp_per_row` with 128-bit loads of A, and of x where its address allows.

A load instruction reads 512 bytes per warp instead of 128 (fp32; of fp16 and int8, 64 and 32), so a quarter of the instructions
keeps the same bytes in flight. Where the address or pitch of A's rows does not allow it, this is `warp_per_row`; elements
before the first 16-byte boundary and after the last are read separately.

Mirrors cuda_reference/gemv/vectorized.cuh, the write-up's design for N >= 128.
"""

from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector, Vectors
from ..language.triton import tl, triton
from ..operations.gemv.vectors import full_vector
from .parts.row_tile import add_ends, add_step, interpreted, row_design, store_rows, tile, walk_of, zero_sums
from .parts.structs import Addend, Rows


@triton.jit
def _vectorized_kernel(
    a: Matrices, x: Vectors, y: Addend, scale: Vector, out: Vectors, rows: Rows, alpha,
    BLOCK_M: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr, STREAMS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A warp walks a row: each of its lanes reads a vector at a step."""
    wait_for_earlier_kernels()
    walk = walk_of(a, x, rows, BLOCK_M, WIDE)
    BLOCK_N: tl.constexpr = LANES * rows.V
    partial = zero_sums(x, BLOCK_M, BLOCK_N)
    end = rows.vectors * rows.V
    for n in range(0, end, BLOCK_N * UNROLL):
        for step in tl.static_range(UNROLL):  # so many loads are in flight, as none depends on another
            partial = add_step(partial, a, x, walk, n + step * BLOCK_N, end, STREAMS, WIDE)
    partial = add_ends(partial, a, x, rows, walk, STREAMS, WIDE)
    sums = tl.sum(partial, axis=1)  # by five shuffles
    store_rows(sums, walk.valid, walk.batch, walk.m, y, scale, out, alpha)


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


DESIGN = row_design(_vectorized_kernel, configs)
