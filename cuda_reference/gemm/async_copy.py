"""FP32 GEMM, async_copy: the configs and launches of async_copy.cuh."""

from tritonkernels.operations.gemm.float32_only import float32_only

from .parts.configs import LONG, SEED, SMALL, WIDE, tiles
from .parts.launches import one_tile_a_block
from .parts.packed_rows import may_pack_rows

SPACE = tiles(WIDE, STAGES=4, GROUP=4) + tiles(WIDE, LONG, SEED, SMALL, STAGES=3, GROUP=4)


def refuses(problem, target):
    return float32_only(problem, target) or target.lacks("cp.async", 80)


def shared_bytes(config):
    """Per block: STAGES slices of both operands; A's are PaddedTiles."""
    return config["STAGES"] * config["BK"] * (config["BM"] + 4 + config["BN"]) * 4


DESIGN = may_pack_rows(
    one_tile_a_block(
        SPACE,
        "gemm::async_copy<{BM}, {BN}, {BK}, {TM}, {TN}, {STAGES}, {VECTOR}, {SHIFTED}>",
        refuses=refuses,
        shared_bytes=shared_bytes,
    )
)
