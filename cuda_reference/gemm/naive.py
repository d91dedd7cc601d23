"""FP32 GEMM, naive: the launcher of naive.cuh."""

from ..launch import configs_of
from .parts.lessons import one_tile_a_block

DESIGN = one_tile_a_block("gemm::naive<{BM}, {BN}>", configs_of("BM BN", (8, 32), (32, 32), (4, 64)))
