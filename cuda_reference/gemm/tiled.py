"""FP32 GEMM, tiled: the launcher of tiled.cuh."""

from .parts.lessons import one_tile_a_block

DESIGN = one_tile_a_block("gemm::tiled<{BM}, {BN}, {BK}, {TM}, {TN}>")
