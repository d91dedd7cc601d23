"""conv2d, prefetched: the configs and launches of prefetched.cuh, and what it refuses."""

import torch

from tritonkernels.lesson import lesson
from tritonkernels.operations.conv2d.shapes import STAGED_BYTES, TILE, tiles_of_outputs

from ..launch import Kernel
from .direct import SPACE, tile_bytes
from .parts.operands import arguments

KERNEL = Kernel("conv2d::prefetched<{KT}>", SPACE)


def shared_bytes(problem, config):
    """Per block: two stages, each with a channel's halo and its filters."""
    return 2 * (tile_bytes(problem) + problem.r * problem.s * config["KT"] * 4)


def configs(problem, target):
    return [config for config in SPACE if shared_bytes(problem, config) <= STAGED_BYTES]


def refuses(problem, target):
    if missing := target.lacks("cp.async", 80):
        return missing
    needed = shared_bytes(problem, SPACE[0])
    if needed > STAGED_BYTES:
        return f"two channels' inputs and filters take {needed} bytes of shared memory, of {STAGED_BYTES}"
    return None


def launches(problem, config, *tensors):
    grid = (tiles_of_outputs(problem, TILE, config["KT"]),)
    yield KERNEL.launch(config, grid, 32, arguments(problem, *tensors), shared_bytes(problem, config))


DESIGN = lesson(configs, launches, ((torch.float32, torch.float32),), refuses)
