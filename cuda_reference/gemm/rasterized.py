"""FP32 GEMM, rasterized: the configs and launches of rasterized.cuh."""

from .parts.configs import LONG, SEED, SMALL, WIDE, each, tiles
from .parts.launches import one_tile_a_block
from .parts.packed_rows import may_pack_rows

SPACE = each(tiles(LONG, SEED, SMALL, WIDE), GROUP=(1, 4, 16, 0))
DESIGN = may_pack_rows(one_tile_a_block(SPACE, "gemm::rasterized<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}, {SHIFTED}>"))
