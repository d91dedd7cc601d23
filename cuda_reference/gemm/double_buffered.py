"""FP32 GEMM, double_buffered: the configs and launches of double_buffered.cuh."""

from .parts.configs import LONG, SEED, SMALL, WIDE, tiles
from .parts.launches import one_tile_a_block

DESIGN = one_tile_a_block(tiles(LONG, SEED, SMALL, WIDE), "gemm::double_buffered<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>")
