"""FP32 GEMM, tiled: the configs and launches of tiled.cuh."""

from tritonkernels.design import takes_everything

from .parts.configs import SEED, tiles
from .parts.launches import one_tile_a_block

DESIGN = one_tile_a_block(
    tiles(SEED, (64, 64, 8, 4, 4)),
    "gemm::tiled<{T}, {BM}, {BN}, {BK}, {TM}, {TN}>",
    refuses=takes_everything,
)
