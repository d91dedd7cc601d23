"""conv2d, direct: the configs and launches of direct.cuh."""

from tritonkernels.conv2d.parts.shapes import STAGED_BYTES, TILE, tiles_of_outputs
from tritonkernels.design import Design

from ..launch import Kernel
from .parts.operands import TYPES, arguments
from .parts.tiles import SPACE, THREADS, tile_bytes, work_of_tiles

KERNEL = Kernel(
    "conv2d::direct<{T}, {KT}, {STAGED}>", [config | {"STAGED": staged} for config in SPACE for staged in (True, False)]
)


def launches(problem, config, *tensors):
    shared_bytes = tile_bytes(problem)
    staged = shared_bytes <= STAGED_BYTES
    parameters = {"T": TYPES[problem.dtype], "STAGED": staged, **config}
    grid = (tiles_of_outputs(problem, TILE, config["KT"]),)
    yield KERNEL.launch(parameters, grid, THREADS, arguments(problem, *tensors), shared_bytes if staged else 0)


def work(problem, config, target):
    """Of each channel, a trip for its halo if that is staged, and one for each tap."""
    shared_bytes = tile_bytes(problem)
    staged = shared_bytes <= STAGED_BYTES
    steps = problem.terms + staged * problem.c // problem.groups
    return work_of_tiles(problem, config, target, steps, shared_bytes * staged)


DESIGN = Design(configs=lambda problem, target: SPACE, launches=launches, work=work)
