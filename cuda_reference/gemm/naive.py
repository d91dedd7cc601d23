"""FP32 GEMM, naive: the configs and launches of naive.cuh."""

from tritonkernels.design import Design
from tritonkernels.gemm.parts.work import of_tiles

from ..launch import Kernel, configs_of
from .parts.configs import count_tiles
from .parts.launches import TYPES, arguments

KERNEL = Kernel("gemm::naive<{T}, {BM}, {BN}>", configs_of("BM BN", (8, 32), (4, 64), (32, 32)))


def launches(problem, config, *tensors):
    parameters, threads = config | {"T": TYPES[problem.dtype]}, config["BM"] * config["BN"]
    yield KERNEL.launch(parameters, (count_tiles(problem, config),), threads, arguments(problem, *tensors))


def tile(config):
    """Four loads of k in flight."""
    return config | {"BK": 1, "threads": config["BM"] * config["BN"], "stages": 4}


DESIGN = Design(configs=lambda problem, target: KERNEL.space, launches=launches, work=of_tiles(tile))
