"""FP32 GEMM, tiled: the configs and launches of tiled.cuh."""

from tritonkernels.design import Design

from ..launch import CudaLaunch
from .parts.configs import SEED, count_tiles, fewest_rounds, tiles
from .parts.launches import arguments, source, threads

SPACE = tiles(SEED, (64, 64, 8, 4, 4))
KERNEL = "gemm::tiled<{BM}, {BN}, {BK}, {TM}, {TN}>"
SOURCE = source("tiled.cuh", SPACE, KERNEL)


def configs(problem, target):
    return fewest_rounds(SPACE, problem, target)


def launches(problem, config, a, b, c, out):
    kernel = KERNEL.format(**config)
    grid, block = (count_tiles(problem, config),), (threads(config), 1, 1)
    yield CudaLaunch(SOURCE, kernel, grid, block, arguments(problem, a, b, c, out))


DESIGN = Design(configs=configs, launches=launches)
