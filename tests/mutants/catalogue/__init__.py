"""Broken kernels, all of which the suite must notice, by operation."""

from tests.mutants.catalogue import (
    addend_cuda,
    as_torch,
    conv2d,
    conv2d_cuda,
    gemm,
    gemv,
    gradients,
    matmul,
    matmul_cuda,
    matmul_lessons,
    persistent_cuda,
    planes_cuda,
    plans,
    shared,
    shared_tiles_cuda,
    swapped_cuda,
    warp_rows_cuda,
)

PARTS = (
    gemm,
    gemv,
    conv2d,
    conv2d_cuda,
    gradients,
    matmul,
    matmul_cuda,
    matmul_lessons,
    persistent_cuda,
    addend_cuda,
    swapped_cuda,
    shared_tiles_cuda,
    warp_rows_cuda,
    planes_cuda,
    plans,
    as_torch,
    shared,
)
MUTANTS = [mutant for part in PARTS for mutant in part.MUTANTS]
