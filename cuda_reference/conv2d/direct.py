"""conv2d's direct in CUDA C++: its config space and its launch."""

from tritonkernels.conv2d.parts.regime import STAGED_BYTES, TILE
from tritonkernels.design import Design

from ..launch import CudaLaunch
from .parts.halo import SPACE, THREADS, tile_bytes
from .parts.operands import TYPES, arguments, sources
from .parts.tiles import count_tiles, covering

TEMPLATE = "conv2d::direct<{T}, {KT}, {STAGED}>"
SOURCES = sources(
    "conv2d/direct.cuh", [TEMPLATE.format(T="{T}", STAGED=staged, **c) for c in SPACE for staged in ("true", "false")]
)


def launches(problem, config, *tensors):
    shared_bytes = tile_bytes(problem)
    staged = shared_bytes <= STAGED_BYTES
    yield CudaLaunch(
        SOURCES[problem.dtype],
        TEMPLATE.format(T=TYPES[problem.dtype], STAGED="true" if staged else "false", **config),
        grid=(count_tiles(problem, TILE, config["KT"]),),
        block=(THREADS, 1, 1),
        arguments=arguments(problem, *tensors),
        shared_bytes=shared_bytes if staged else 0,
    )


DESIGN = Design(configs=lambda problem, target: covering(problem, SPACE), launches=launches)
