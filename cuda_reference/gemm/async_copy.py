"""FP32 GEMM, async_copy: the configs and launches of async_copy.cuh."""

from tritonkernels.design import Design

from ..launch import CudaLaunch
from .parts.configs import LONG, SEED, SMALL, WIDE, count_tiles, fewest_rounds, tiles
from .parts.launches import arguments, group, source, threads, vector

SPACE = tiles(WIDE, STAGES=4, GROUP=4) + tiles(WIDE, LONG, SEED, SMALL, STAGES=3, GROUP=4)
KERNEL = "gemm::async_copy<{BM}, {BN}, {BK}, {TM}, {TN}, {STAGES}, {VECTOR}>"
SOURCE = source("async_copy.cuh", SPACE, KERNEL)


def refuses(problem, target):
    return target.lacks("cp.async", 80)


def configs(problem, target):
    return fewest_rounds(SPACE, problem, target)


def launches(problem, config, a, b, c, out):
    kernel = KERNEL.format(**config, VECTOR=vector(a, b))
    grid, block = (count_tiles(problem, config),), (threads(config), 1, 1)
    shared_bytes = config["STAGES"] * config["BK"] * (config["BM"] + 4 + config["BN"]) * 4  # of slices, A's in PaddedTiles
    yield CudaLaunch(SOURCE, kernel, grid, block, (*arguments(problem, a, b, c, out), group(problem, config)), shared_bytes)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches)
