"""conv2d, direct: the configs and launches of direct.cuh."""

from tritonkernels.conv2d.parts.regime import STAGED_BYTES, TILE
from tritonkernels.design import Design

from ..launch import Kernel
from .parts.operands import TYPES, arguments
from .parts.tiles import SPACE, THREADS, count_tiles, covering, tile_bytes

KERNEL = Kernel(
    "conv2d::direct<{T}, {KT}, {STAGED}>", [config | {"STAGED": staged} for config in SPACE for staged in (True, False)]
)


def launches(problem, config, *tensors):
    shared_bytes = tile_bytes(problem)
    staged = shared_bytes <= STAGED_BYTES
    parameters = {"T": TYPES[problem.dtype], "STAGED": staged, **config}
    grid = (count_tiles(problem, TILE, config["KT"]),)
    yield KERNEL.launch(parameters, grid, THREADS, arguments(problem, *tensors), shared_bytes if staged else 0)


DESIGN = Design(configs=lambda problem, target: covering(problem, SPACE), launches=launches)
