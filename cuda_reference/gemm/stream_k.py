"""FP32 GEMM, stream_k: the configs and launches of stream_k.cuh."""

import torch

from tritonkernels.design import Design

from ..launch import CudaLaunch
from .parts.configs import SEED, SMALL, WIDE, a_block_per_slot, count_tiles, tiles
from .parts.launches import arguments, group, source, threads, vector

SPACE = tiles(WIDE, SEED, SMALL, GROUP=4)
MULTIPLY = "gemm::stream_k<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>"
ADD = "gemm::add_runs<{BM}, {BN}, {BK}, {TM}, {TN}>"
SOURCE = source("stream_k.cuh", SPACE, MULTIPLY, ADD)


def configs(problem, target):
    return a_block_per_slot(SPACE, problem, target)


def launches(problem, config, a, b, c, out):
    count, blocks = count_tiles(problem, config), config["BLOCKS"]
    left = count % blocks  # after whole waves; with one wave more the runs are long enough to hide their ends
    left += blocks if left and count > blocks else 0
    whole, block = count - left, (threads(config), 1, 1)
    workspace = torch.empty(2 * blocks * config["BM"] * config["BN"] if left else 0, dtype=out.dtype, device=out.device)
    a, b, c, out, *rest = (*arguments(problem, a, b, c, out), group(problem, config), whole)
    kernel = MULTIPLY.format(**config, VECTOR=vector(a, b))
    yield CudaLaunch(SOURCE, kernel, (blocks,), block, (a, b, c, out, workspace, *rest))
    if left:
        yield CudaLaunch(SOURCE, ADD.format(**config), (left, config["TM"]), block, (workspace, c, out, *rest, blocks))


DESIGN = Design(configs=configs, launches=launches)
