"""Broken kernels, all of which the suite must notice, by operation."""

from . import conv2d, gemm, gemv, gradients, matmul, plans, shared

MUTANTS = [mutant for part in (gemm, gemv, conv2d, gradients, matmul, plans, shared) for mutant in part.MUTANTS]
