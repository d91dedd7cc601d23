"""conv2d, naive: the launches of naive.cuh. A block takes THREADS outputs."""

import torch

from tritonkernels.lesson import lesson

from ..launch import Kernel, ceil_div, configs_of
from .parts.operands import arguments

SPACE = configs_of("THREADS", (128,))
KERNEL = Kernel("conv2d::naive<{THREADS}>", SPACE)


def launches(problem, config, *tensors):
    threads = config["THREADS"]
    yield KERNEL.launch(config, (ceil_div(problem.outputs, threads),), threads, arguments(problem, *tensors))


DESIGN = lesson(lambda problem, target: SPACE, launches, types=((torch.float32, torch.float32),))
