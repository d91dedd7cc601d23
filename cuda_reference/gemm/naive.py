"""FP32 GEMM, naive: the configs and launches of naive.cuh."""

from tritonkernels.design import Design
from tritonkernels.gemm.parts.work import of_tiles

from ..launch import Kernel
from .parts.configs import count_tiles
from .parts.launches import arguments

KERNEL = Kernel("gemm::naive<{BM}, {BN}>", [{"BM": 8, "BN": 32}, {"BM": 4, "BN": 64}, {"BM": 32, "BN": 32}])


def launches(problem, config, *tensors):
    threads = config["BM"] * config["BN"]
    yield KERNEL.launch(config, (count_tiles(problem, config),), threads, arguments(problem, *tensors))


def tile(config):
    """Four loads of k in flight."""
    return config | {"BK": 1, "threads": config["BM"] * config["BN"], "stages": 4}


DESIGN = Design(configs=lambda problem, target: KERNEL.space, launches=launches, work=of_tiles(tile))
