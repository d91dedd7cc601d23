"""FP32 GEMM, z_order: the configs and launches of z_order.cuh."""

from .parts.configs import LONG, SEED, SMALL, tiles
from .parts.launches import one_tile_a_block

DESIGN = one_tile_a_block(tiles(LONG, SEED, SMALL), "gemm::z_order<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>")
