"""Broken kernels, all of which the suite must notice, by operation."""

from . import conv2d, conv2d_cuda, gemm, gemv, matmul, plans, shared

MUTANTS = [mutant for part in (gemm, gemv, conv2d, conv2d_cuda, matmul, plans, shared) for mutant in part.MUTANTS]
