"""conv2d, register_blocked: the configs and launches of register_blocked.cuh, and what it refuses."""

import torch

from tritonkernels.design import Design
from tritonkernels.operations.conv2d.shapes import BIG_TILE, STAGED_BYTES, blocked_bytes, tiles_of_outputs
from tritonkernels.operations.conv2d.work import of_outputs

from ..launch import Kernel, ceil_div, configs_of
from .parts.operands import TYPES, arguments, followed, what_follows

SPACE = configs_of("KT", (3,), (4,), (6,), (8,), (16,))
THREADS = 128
BLOCK_BYTES = 24 * 1024  # of shared memory, which leaves room for several blocks on an SM
KERNEL = Kernel(
    "conv2d::register_blocked<{T}, {KT}, {UNIT}>", [config | {"UNIT": unit} for config in SPACE for unit in (True, False)]
)
FOLLOWED = followed(KERNEL)


def refuses(problem, target):
    if problem.dtype == torch.float64:
        return "its sums are fp32"
    needed = blocked_bytes(problem, 16)
    if needed > STAGED_BYTES:
        return f"a tile's inputs and filters of one channel take {needed} bytes of shared memory, of {STAGED_BYTES}"
    return None


def staged(problem, config):
    """(channels that are staged together, bytes of each)."""
    channel_bytes = blocked_bytes(problem, config["KT"])
    return max(1, min(problem.c // problem.groups, BLOCK_BYTES // channel_bytes)), channel_bytes


def launches(problem, config, input, weight, bias, out, residual=None):
    channels, channel_bytes = staged(problem, config)
    parameters = {"T": TYPES[problem.dtype], "UNIT": problem.stride[1] == problem.dilation[1] == 1, **config}
    grid = (tiles_of_outputs(problem, BIG_TILE, config["KT"]),)
    given = *arguments(problem, input, weight, bias, out), channels, *what_follows(problem, residual)
    yield (FOLLOWED if problem.after else KERNEL).launch(parameters, grid, THREADS, given, channels * channel_bytes)


def configs(problem, target):
    return SPACE


def work(problem, config, target):
    """The loads of a channel follow each other, a vector a thread; a barrier waits for those that are staged together."""
    channels, channel_bytes = staged(problem, config)
    of_group = problem.c // problem.groups
    steps = of_group * ceil_div(channel_bytes, 16 * THREADS) + ceil_div(of_group, channels)
    kt = config["KT"]
    given = tiles_of_outputs(problem, BIG_TILE, kt), THREADS, (*BIG_TILE, 1), kt, steps
    registers = 64 + BIG_TILE[0] * BIG_TILE[1] * kt // THREADS
    return (of_outputs(problem, target, *given, registers=registers, shared=channels * channel_bytes),)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
