"""FP32 GEMM, split_k: the configs and launches of split_k.cuh."""

import torch

from tritonkernels.design import Design
from tritonkernels.gemm.parts.float32_only import float32_only
from tritonkernels.gemm.parts.work import of_splits

from ..launch import Kernel, ceil_div
from .parts.configs import SEED, SMALL, count_tiles, each, in_order, tiles
from .parts.launches import block_tile, group, strides, threads, vector, with_vector

SPACE = each(tiles(SEED, SMALL, GROUP=1), SPLITS=(2, 4, 8, 16))
ADDING_THREADS = 256
ADD = f"gemm::add_splits<{ADDING_THREADS}>"
KERNEL = Kernel("gemm::split_k<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>", with_vector(SPACE), others=(ADD,))


def configs(problem, target):
    return in_order(SPACE, target)


def launches(problem, config, a, b, c, out):
    m, n, k, splits = problem.m, problem.n, problem.k, config["SPLITS"]
    split_size = ceil_div(ceil_div(k, config["BK"]), splits) * config["BK"]
    partial = torch.empty(splits, m, n, dtype=out.dtype, device=out.device)

    parameters, grid = config | {"VECTOR": vector(a, b)}, (count_tiles(problem, config), splits)
    arguments = (a, b, partial, m, n, k, strides(a, b, None, partial[0]), group(problem, config), split_size)
    yield KERNEL.launch(parameters, grid, threads(config), arguments)

    grid = (m * ceil_div(n, ADDING_THREADS),)
    arguments = (partial, c, out, m, n, splits, problem.alpha, problem.beta, strides(a, b, c, out))
    yield KERNEL.launch(parameters, grid, ADDING_THREADS, arguments, template=ADD)


def tile(config):
    return block_tile(config) | {"splits": config["SPLITS"]}


def _blocks(problem):
    return problem.m * ceil_div(problem.n, ADDING_THREADS)


DESIGN = Design(
    refuses=float32_only, configs=configs, launches=launches, work=of_splits(tile, ADDING_THREADS, ADDING_THREADS, _blocks)
)
