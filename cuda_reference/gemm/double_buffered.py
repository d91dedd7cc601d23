"""FP32 GEMM, double_buffered: the launcher of double_buffered.cuh."""

from .parts.lessons import one_tile_a_block

DESIGN = one_tile_a_block("gemm::double_buffered<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>")
