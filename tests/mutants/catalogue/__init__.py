"""Broken kernels, all of which the suite must notice, by operation."""

from tests.mutants.catalogue import (
    as_torch,
    conv2d,
    conv2d_cuda,
    gemm,
    gemv,
    gradients,
    hopper_cuda,
    matmul,
    matmul_cuda,
    planes_cuda,
    plans,
    shared,
)

PARTS = (gemm, gemv, conv2d, conv2d_cuda, gradients, matmul, matmul_cuda, hopper_cuda, planes_cuda, plans, as_torch, shared)
MUTANTS = [mutant for part in PARTS for mutant in part.MUTANTS]
