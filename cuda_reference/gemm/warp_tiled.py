"""FP32 GEMM, warp_tiled: the launcher of warp_tiled.cuh."""

from .parts.lessons import one_tile_a_block

DESIGN = one_tile_a_block("gemm::warp_tiled<{BM}, {BN}, {BK}, {TM}, {TN}>")
