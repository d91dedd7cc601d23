"""FP32 GEMM, vectorized: the configs and launches of vectorized.cuh."""

from .parts.configs import SEED, SMALL, tiles
from .parts.launches import one_tile_a_block

DESIGN = one_tile_a_block(tiles(SEED, SMALL), "gemm::vectorized<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>")
