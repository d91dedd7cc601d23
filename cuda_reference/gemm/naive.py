"""FP32 GEMM, naive: the configs and launches of naive.cuh."""

from tritonkernels.design import Design

from ..launch import CudaLaunch
from .parts.configs import count_tiles
from .parts.launches import arguments, source

SPACE = [{"BM": 8, "BN": 32}, {"BM": 4, "BN": 64}, {"BM": 32, "BN": 32}]
KERNEL = "gemm::naive<{BM}, {BN}>"
SOURCE = source("naive.cuh", SPACE, KERNEL)


def configs(problem, target):
    return SPACE


def launches(problem, config, a, b, c, out):
    grid, block = (count_tiles(problem, config),), (config["BM"] * config["BN"], 1, 1)
    yield CudaLaunch(SOURCE, KERNEL.format(**config), grid, block, arguments(problem, a, b, c, out))


DESIGN = Design(configs=configs, launches=launches)
