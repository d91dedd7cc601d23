"""Matrix product of fp32 in IEEE arithmetic, cuda_cores (Gluon): outer products in registers, of slices that cp.async copies.

tl.dot of fp32 also multiplies on CUDA cores. But an operand that lies along K, as the weight of a linear layer does, is read
from shared memory with bank conflicts, or has to be packed first. Here the program defines where each float of a slice lies, so
that nothing is packed and no access has a conflict. An operand comes in one of three ways:

quads of rows   M or N is contiguous: 16 bytes a copy, row after row of k
quads of K      K is contiguous, and stays so in shared memory: 16 bytes a copy. The 32 floats of K of a row of A or column of B
                fill all banks. Its quad q lies at q ^ (index / 4 % 8), since the 8 lanes of a phase read 8 indices, 4 apart
single floats   quads are not aligned: 4 bytes a copy. What lies along K is transposed on the way: a warp copies 8 of K by 4
                indices, and quad q of row k lies at q ^ (k % 8), so that the stores of a warp fill all banks

All are read in quads: for 8 x 8 sums a thread reads 4 of them per 64 multiply-adds. With tiles of 128 x 128 88 to 92 % of the
instructions of the loop over slices are FFMA (sm_90).

Mirrors cuda_reference/matmul/cuda_cores.cuh.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from ..language.gluon_tile import PLAIN, Operand, Staging, accumulators, distance, loads, multiply_add, needs_a_gpu
from ..language.overlap import wait_for_earlier_kernels
from ..language.renamed import barrier
from ..language.structs import Matrices, Vector
from ..operations.matmul.schemes import NO_FINER_THAN_IEEE, in_ieee
from .parts.arguments import Arithmetic, Epilogue, Sizes
from .parts.gluon_product import Words, copy_slices, first_slices, in_words, part_of, product_design, store_part
from .parts.ranges_of_k import Splits


@gluon.jit
def _tile_product(
    a: Operand, b: Operand, row, col, length, how: Staging, words: Words,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    """The sum over the first `length` of K of the tile at (row, col)."""
    STAGES: gl.constexpr = how.STAGES
    slices, a_ptr, b_ptr, of_a, of_b = first_slices(a, b, row, col, length, how, words, BLOCK_M, BLOCK_N, BLOCK_K, WIDE)
    acc = gl.zeros([BLOCK_M, BLOCK_N], a.ptr.dtype.element_ty, how.ACC)
    stage = 0  # holds the slice that is multiplied
    free = STAGES - 1  # held the one before
    for left in range(slices, 0, -1):
        async_copy.wait_group(STAGES - 2)  # this thread's part of the slice is there
        barrier()  # everybody's is, and nobody reads the one before any more
        copy_slices(of_a, of_b, a_ptr, b_ptr, free, left >= STAGES)
        a_ptr += distance(BLOCK_K, a.k, WIDE)
        b_ptr += distance(BLOCK_K, b.k, WIDE)
        acc = multiply_add(acc, of_a.places.index(stage), of_b.places.index(stage))
        free = stage
        stage = stage + 1 if stage < STAGES - 1 else 0
    return acc


@gluon.jit
def _cuda_cores_kernel(
    a: Matrices, b: Matrices, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, splits: Splits, counters, staging: Staging, words: Words,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
):  # fmt: skip
    """A program has a tile, and all of K or a split of it."""
    wait_for_earlier_kernels()
    at = part_of(a, b, sizes, splits, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    acc = _tile_product(at.a, at.b, at.row, at.col, at.length, staging, words, BLOCK_M, BLOCK_N, BLOCK_K, how.WIDE)
    store_part(acc, at, scale_a, scale_b, c, bias, out, sizes, epilogue, splits, counters, BLOCK_M, BLOCK_N, how.WIDE)


# (BLOCK_M, BLOCK_N, BLOCK_K: floats that fill all banks, num_warps, num_stages): 8 x 8 sums a thread, then fewer, then 4 x 4 of
# few columns or rows, which wait for memory alone
TILES = (
    (128, 128, 32, 8, 3),
    (64, 128, 32, 4, 3),
    (128, 64, 32, 4, 3),
    (64, 64, 32, 2, 3),
    (64, 64, 32, 4, 4),
    (32, 128, 32, 4, 4),
    (32, 64, 32, 4, 4),
    (64, 32, 32, 4, 4),
    (32, 32, 32, 2, 4),
    (128, 16, 32, 4, 3),
    (128, 8, 32, 2, 3),
    (16, 128, 32, 4, 3),
    (8, 128, 32, 2, 3),
)


def refuses(problem, target):
    lacking = needs_a_gpu(target) or target.lacks("cp.async", 80)
    if lacking or problem.precision in NO_FINER_THAN_IEEE:
        return lacking
    return f"it multiplies float32 on CUDA cores, and has no {problem.precision}"


def _stored(config, t, length):
    if in_words(t, along=2):
        return loads(config, length, along_k=True, width=4), gl.SwizzledSharedLayout(4, 4, 8, [0, 1]), 1
    quads = in_words(t, along=1)
    if not quads and t.stride(2) <= t.stride(1):
        return loads(config, length, along_k=True, width=1, lanes=8), gl.SwizzledSharedLayout(4, 1, 8, [1, 0]), 1
    width = 4 if quads else 1
    return loads(config, length, along_k=False, width=width), PLAIN, width


DESIGN = product_design(_cuda_cores_kernel, TILES, refuses, accumulators, _stored, in_ieee)
