"""conv2d's prefetched in CUDA C++: its config space, what does not fit, and its launch."""

from tritonkernels.conv2d.parts.regime import STAGED_BYTES, TILE
from tritonkernels.design import Design

from ..launch import CudaLaunch, ceil_div
from .parts.halo import SPACE, THREADS, tile_bytes
from .parts.operands import TYPES, arguments, sources
from .parts.tiles import count_tiles, covering

TEMPLATE = "conv2d::prefetched<{T}, {KT}>"
SOURCES = sources("conv2d/prefetched.cuh", [TEMPLATE.format(T="{T}", **config) for config in SPACE])


def shared_bytes(problem, config):
    """Two stages, each a channel's halo and its filters."""
    element = problem.dtype.itemsize
    halo = tile_bytes(problem) // max(4, element) * element
    return 2 * (halo + ceil_div(problem.r * problem.s * config["KT"] * element, 16) * 16)


def fitting(problem):
    return [config for config in SPACE if shared_bytes(problem, config) <= STAGED_BYTES]


def refuses(problem, target):
    if missing := target.lacks("cp.async", 80):
        return missing
    if not fitting(problem):
        needed = min(shared_bytes(problem, config) for config in SPACE)
        return f"two channels' inputs and filters take {needed} bytes of shared memory, of {STAGED_BYTES}"
    return None


def launches(problem, config, *tensors):
    yield CudaLaunch(
        SOURCES[problem.dtype],
        TEMPLATE.format(T=TYPES[problem.dtype], **config),
        grid=(count_tiles(problem, TILE, config["KT"]),),
        block=(THREADS, 1, 1),
        arguments=arguments(problem, *tensors),
        shared_bytes=shared_bytes(problem, config),
    )


DESIGN = Design(refuses=refuses, configs=lambda problem, target: covering(problem, fitting(problem)), launches=launches)
