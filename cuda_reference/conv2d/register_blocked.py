"""conv2d, register_blocked: the configs and launches of register_blocked.cuh, and what it refuses."""

import torch

from tritonkernels.conv2d.parts.regime import BIG_TILE, STAGED_BYTES, blocked_bytes
from tritonkernels.design import Design

from ..launch import Kernel
from .parts.operands import TYPES, arguments
from .parts.tiles import count_tiles, covering

SPACE = [{"KT": kt} for kt in (8, 3, 4, 6, 16)]
THREADS = 128
BLOCK_BYTES = 24 * 1024  # of shared memory, which leaves room for several blocks on an SM
KERNEL = Kernel(
    "conv2d::register_blocked<{T}, {KT}, {UNIT}>", [config | {"UNIT": unit} for config in SPACE for unit in (True, False)]
)


def refuses(problem, target):
    if problem.dtype == torch.float64:
        return "its sums are fp32"
    needed = blocked_bytes(problem, 16)
    if needed > STAGED_BYTES:
        return f"a tile's inputs and filters of one channel take {needed} bytes of shared memory, of {STAGED_BYTES}"
    return None


def launches(problem, config, *tensors):
    channel_bytes = blocked_bytes(problem, config["KT"])
    channels = max(1, min(problem.c // problem.groups, BLOCK_BYTES // channel_bytes))
    parameters = {"T": TYPES[problem.dtype], "UNIT": problem.stride[1] == problem.dilation[1] == 1, **config}
    grid, given = (count_tiles(problem, BIG_TILE, config["KT"]),), (*arguments(problem, *tensors), channels)
    yield KERNEL.launch(parameters, grid, THREADS, given, channels * channel_bytes)


DESIGN = Design(refuses=refuses, configs=lambda problem, target: covering(problem, SPACE), launches=launches)
