"""FP32 GEMM, warp_tiled: the configs and launches of warp_tiled.cuh."""

from .parts.configs import SEED, tiles
from .parts.launches import one_tile_a_block

DESIGN = one_tile_a_block(tiles(SEED, (64, 64, 8, 4, 4)), "gemm::warp_tiled<{BM}, {BN}, {BK}, {TM}, {TN}>")
