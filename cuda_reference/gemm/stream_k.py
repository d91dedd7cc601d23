"""FP32 GEMM, stream_k: the configs and launches of stream_k.cuh."""

import torch

from tritonkernels.choice.work import product, stream_addition, streamed
from tritonkernels.design import Design
from tritonkernels.gemm.parts.float32_only import float32_only

from ..launch import Kernel
from .parts.configs import SEED, SMALL, WIDE, count_tiles, in_order, tiles
from .parts.launches import arguments, block_tile, group, threads, vector, with_vector

WAVES = 2  # that are shared: with a full one beside the rest every block's run is long enough
SPACE = tiles(WIDE, SEED, SMALL, GROUP=4)
ADD = "gemm::add_runs<{BM}, {BN}, {BK}, {TM}, {TN}>"
KERNEL = Kernel("gemm::stream_k<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}>", with_vector(SPACE), others=(ADD,))


def configs(problem, target):
    """As many BLOCKS as the GPU holds at a time, one an SM for tiles whose sums fill its registers; so few in the emulation
    that blocks share tiles."""
    slots = max(target.sms, 2)
    return [c | {"BLOCKS": slots * (1 if c["TM"] * c["TN"] > 64 else 2)} for c in in_order(SPACE, target)]


def launches(problem, config, a, b, c, out):
    count, blocks = count_tiles(problem, config), config["BLOCKS"]
    left = streamed(count, blocks, WAVES)
    whole, parameters = count - left, config | {"VECTOR": vector(a, b)}
    workspace = torch.empty(2 * blocks * config["BM"] * config["BN"] if left else 0, dtype=out.dtype, device=out.device)
    a, b, c, out, *rest = (*arguments(problem, a, b, c, out), group(problem, config), whole)
    yield KERNEL.launch(parameters, (blocks,), threads(config), (a, b, c, out, workspace, *rest))
    if left:
        given = workspace, c, out, *rest, blocks
        yield KERNEL.launch(parameters, (left, config["TM"]), threads(config), given, template=ADD)


def tile(config):
    return block_tile(config) | {"programs": config["BLOCKS"], "waves": WAVES}


def work(problem, config, target):
    """All blocks are launched."""
    blocks = config["BLOCKS"]
    left = streamed(count_tiles(problem, config), blocks, WAVES)
    kernel = product(problem, tile(config), target)._replace(blocks=blocks)
    block = config["BM"] * config["BN"] // config["TM"]
    adds = stream_addition(problem, left, blocks, block, threads(config), blocks=left * config["TM"])
    return (kernel, adds) if left else (kernel,)


DESIGN = Design(refuses=float32_only, configs=configs, launches=launches, work=work)
