"""conv2d, direct: the configs and launches of direct.cuh, and what it refuses."""

import torch

from tritonkernels.lesson import lesson
from tritonkernels.operations.conv2d.shapes import STAGED_BYTES, TILE, halo_bytes, tiles_of_outputs

from ..launch import Kernel, configs_of
from .parts.operands import arguments

SPACE = configs_of("KT", (4,), (8,), (16,))
KERNEL = Kernel("conv2d::direct<{KT}>", SPACE)


def tile_bytes(problem):
    """Shared memory of a channel's halo, in pieces of 16 bytes, of which the first may begin three columns earlier."""
    return halo_bytes(problem, TILE, 16, before=3)


def refuses(problem, target):
    needed = tile_bytes(problem)
    return f"a channel's inputs take {needed} bytes of shared memory, of {STAGED_BYTES}" if needed > STAGED_BYTES else None


def launches(problem, config, *tensors):
    grid = (tiles_of_outputs(problem, TILE, config["KT"]),)
    yield KERNEL.launch(config, grid, 32, arguments(problem, *tensors), tile_bytes(problem))


DESIGN = lesson(lambda problem, target: SPACE, launches, ((torch.float32, torch.float32),), refuses)
