"""FP32 GEMM, z_order: the launcher of z_order.cuh."""

from .parts.lessons import one_tile_a_block

DESIGN = one_tile_a_block("gemm::z_order<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>")
