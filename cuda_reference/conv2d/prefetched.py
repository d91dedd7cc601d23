"""conv2d, prefetched: the configs and launches of prefetched.cuh, and what it refuses."""

import functools

from tritonkernels.choice.work import KNOWN_PROBLEMS
from tritonkernels.conv2d.parts.shapes import STAGED_BYTES, TILE, tiles_of_outputs
from tritonkernels.design import Design

from ..launch import Kernel, ceil_div
from .parts.operands import TYPES, arguments
from .parts.tiles import SPACE, THREADS, tile_bytes, work_of_tiles

KERNEL = Kernel("conv2d::prefetched<{T}, {KT}>", SPACE)


def shared_bytes(problem, config):
    """Per block: two stages, each with a channel's halo and its filters."""
    element = problem.dtype.itemsize
    halo = tile_bytes(problem) // max(4, element) * element
    return 2 * (halo + ceil_div(problem.r * problem.s * config["KT"] * element, 16) * 16)


@functools.lru_cache(KNOWN_PROBLEMS)
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
    parameters, grid = {"T": TYPES[problem.dtype], **config}, (tiles_of_outputs(problem, TILE, config["KT"]),)
    yield KERNEL.launch(parameters, grid, THREADS, arguments(problem, *tensors), shared_bytes(problem, config))


def configs(problem, target):
    return fitting(problem)


def work(problem, config, target):
    """Each tap is read from shared memory; the next channel is under way meanwhile."""
    return work_of_tiles(problem, config, target, problem.terms, shared_bytes(problem, config))


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
