"""FP32 GEMM, conflict_free: the launcher of conflict_free.cuh."""

from .parts.lessons import one_tile_a_block

DESIGN = one_tile_a_block("gemm::conflict_free<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>")
