"""FP32 GEMM, conflict_free: the configs and launches of conflict_free.cuh."""

from tritonkernels.design import Design

from ..launch import CudaLaunch
from .parts.configs import SEED, SMALL, count_tiles, each, fewest_rounds, tiles
from .parts.launches import arguments, source, threads, vector

SPACE = each(tiles(SEED, SMALL), A_TILE=("PaddedTile", "RemappedTile"))
KERNEL = "gemm::conflict_free<{BM}, {BN}, {BK}, {TM}, {TN}, gemm::{A_TILE}, {VECTOR}>"
SOURCE = source("conflict_free.cuh", SPACE, KERNEL)


def configs(problem, target):
    return fewest_rounds(SPACE, problem, target)


def launches(problem, config, a, b, c, out):
    kernel = KERNEL.format(**config, VECTOR=vector(a, b))
    grid, block = (count_tiles(problem, config),), (threads(config), 1, 1)
    yield CudaLaunch(SOURCE, kernel, grid, block, arguments(problem, a, b, c, out))


DESIGN = Design(configs=configs, launches=launches)
