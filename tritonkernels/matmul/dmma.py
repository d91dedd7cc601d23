"""Matrix product of fp64, dmma (Gluon): tensor cores that multiply doubles, of slices that cp.async copies.

tl.dot of fp64 multiplies on tensor cores, too. But Triton lets B lie in shared memory so that its reads have bank conflicts,
and for a warp's 32 x 32 sums shared memory is then as busy as the tensor cores: with 128 bytes a cycle, they with 128 products.
From 3.8 on it takes smaller mma as well, by which they compute 0.6 as much (parts/mma_of_doubles.py).

An mma of 16 x 8 x 16 is 8 registers of A and 4 of B, each of which a warp reads with 8 rows or columns (lane / 4) of 4
neighbouring k (lane % 4), 16 lanes at a time: 4 k of 4 rows, 32 bytes each. Whichever way an operand is contiguous, these are 4
parts of 32 bytes that begin at the same bank, so the part p of a line lies at p ^ (line % 4). Nothing is packed: doubles are
copied one at a time, if pairs are not aligned.

The kernel is parts/gluon_product.py, its mma parts/mma_of_doubles.py. Mirrors the loop over fp64 of
cuda_reference/matmul/pipelined.cuh and split_k.cuh.
"""

from triton.experimental.gluon import language as gl

from ..language.gluon_tile import loads, needs_a_gpu
from .parts.gluon_product import in_words, product_design
from .parts.mma_of_doubles import SUMS

# (BLOCK_M, BLOCK_N, BLOCK_K: doubles that fill all banks, num_warps, num_stages): 64 x 32 sums a warp, then fewer
TILES = (
    (128, 64, 16, 4, 4),
    (64, 64, 16, 4, 4),
    (64, 32, 16, 4, 4),
    (32, 64, 16, 4, 4),
    (32, 32, 16, 4, 4),
)


def refuses(problem, target):
    lacking = needs_a_gpu(target) or target.lacks("fp64 on tensor cores", 80)
    if lacking or problem.precision == "fp64":
        return lacking
    return f"it multiplies float64 on tensor cores, and has no {problem.precision}"


def _sums(config):
    return SUMS


def _stored(config, t, length):
    along_k = t.stride(2) <= t.stride(1)
    pairs = in_words(t, along=2 if along_k else 1)
    order = [0, 1] if along_k else [1, 0]
    load = loads(config, length, along_k, width=2 if pairs else 1)
    return load, gl.SwizzledSharedLayout(4, 1, 4, order), 2 if pairs and not along_k else 1


DESIGN = product_design(TILES, refuses, _sums, _stored, lambda problem: problem)
