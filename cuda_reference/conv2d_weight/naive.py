"""conv2d_weight, naive: the launches of naive.cuh. A block takes THREADS elements of the weight."""

import torch

from tritonkernels.lesson import lesson

from ..launch import Kernel, ceil_div, configs_of
from .parts.operands import arguments

SPACE = configs_of("THREADS", (128,))
KERNEL = Kernel("conv2d_weight::naive<{THREADS}>", SPACE)


def launches(problem, config, *operands):
    (tensors, structs), threads = arguments(problem, *operands), config["THREADS"]
    yield KERNEL.launch(config, (ceil_div(problem.outputs, threads),), threads, (*tensors, *structs))


DESIGN = lesson(lambda problem, target: SPACE, launches, types=((torch.float32, torch.float32),))
