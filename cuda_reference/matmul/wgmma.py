"""Matrix product, wgmma: the config and launches of wgmma.cuh."""

from tritonkernels.lesson import OF_16_BITS, lesson

from ..launch import config_of
from .parts.arguments import mma_types
from .parts.hopper import BK, along_k, kernel, refuses, result
from .parts.space import tiles

_KERNEL = kernel("wgmma", "{BM}, {BN}")


def _configs(problem, target):
    return [config_of(BM=128, BN=128)]


def _launches(problem, config, a, b, c, bias, out):
    a, b, copies = along_k(a, b)
    yield from copies
    pitches = a.stride(1), b.stride(1)
    grid = (tiles(problem, config["BM"], config["BN"]),)
    shared_bytes = (config["BM"] + config["BN"]) * BK * problem.dtype.itemsize
    yield _KERNEL.launch(config | mma_types(problem), grid, 128, (a, b, *pitches, *result(problem, c, out)), shared_bytes)


DESIGN = lesson(_configs, _launches, OF_16_BITS, refuses)
