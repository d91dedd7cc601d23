"""FP32 GEMM, z_order: the configs and launches of z_order.cuh."""

from tritonkernels.design import Design

from ..launch import CudaLaunch
from .parts.configs import LONG, SEED, SMALL, count_tiles, fewest_rounds, tiles
from .parts.launches import arguments, source, threads, vector

SPACE = tiles(LONG, SEED, SMALL)
KERNEL = "gemm::z_order<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>"
SOURCE = source("z_order.cuh", SPACE, KERNEL)


def configs(problem, target):
    return fewest_rounds(SPACE, problem, target)


def launches(problem, config, a, b, c, out):
    kernel = KERNEL.format(**config, VECTOR=vector(a, b))
    grid, block = (count_tiles(problem, config),), (threads(config), 1, 1)
    yield CudaLaunch(SOURCE, kernel, grid, block, arguments(problem, a, b, c, out))


DESIGN = Design(configs=configs, launches=launches)
