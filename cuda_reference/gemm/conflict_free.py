"""FP32 GEMM, conflict_free: the configs and launches of conflict_free.cuh."""

from .parts.configs import SEED, SMALL, each, tiles
from .parts.launches import one_tile_a_block

SPACE = each(tiles(SEED, SMALL), A_TILE=("PaddedTile", "RemappedTile"))
DESIGN = one_tile_a_block(SPACE, "gemm::conflict_free<{BM}, {BN}, {BK}, {TM}, {TN}, gemm::{A_TILE}, {VECTOR}>")
