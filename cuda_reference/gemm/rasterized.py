"""FP32 GEMM, rasterized: the configs and launches of rasterized.cuh."""

from tritonkernels.design import Design

from ..launch import CudaLaunch
from .parts.configs import LONG, SEED, SMALL, WIDE, count_tiles, each, squarest_wave, tiles
from .parts.launches import arguments, group, source, threads, vector

SPACE = each(tiles(LONG, SEED, SMALL, WIDE), GROUP=(1, 4, 16, 0))
KERNEL = "gemm::rasterized<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>"
SOURCE = source("rasterized.cuh", SPACE, KERNEL)


def configs(problem, target):
    return squarest_wave(SPACE, problem, target)


def launches(problem, config, a, b, c, out):
    kernel = KERNEL.format(**config, VECTOR=vector(a, b))
    grid, block = (count_tiles(problem, config),), (threads(config), 1, 1)
    yield CudaLaunch(SOURCE, kernel, grid, block, (*arguments(problem, a, b, c, out), group(problem, config)))


DESIGN = Design(configs=configs, launches=launches)
