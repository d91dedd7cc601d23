"""FP32 GEMM, vectorized: the launcher of vectorized.cuh."""

from .parts.lessons import one_tile_a_block

DESIGN = one_tile_a_block("gemm::vectorized<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>")
