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

The kernel is parts/gluon_product.py. Mirrors cuda_reference/matmul/cuda_cores.cuh.
"""

from triton.experimental.gluon import language as gl

from ..language.gluon_tile import PLAIN, accumulators, loads, needs_a_gpu
from ..operations.matmul.schemes import NO_FINER_THAN_IEEE, in_ieee
from .parts.gluon_product import in_words, product_design

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


DESIGN = product_design(TILES, refuses, accumulators, _stored, in_ieee)
