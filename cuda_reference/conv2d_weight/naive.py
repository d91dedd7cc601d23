"""conv2d_weight, naive: the launches of naive.cuh."""

from tritonkernels.conv2d_weight.parts.work import of_elements
from tritonkernels.design import Design

from ..conv2d.parts.operands import TYPES
from ..launch import Kernel, ceil_div, configs_of
from .parts.operands import arguments

THREADS = 128
KERNEL = Kernel("conv2d_weight::naive<{T}, {THREADS}>")


def launches(problem, config, *operands):
    tensors, structs = arguments(problem, *operands)
    grid = (ceil_div(problem.outputs, THREADS),)
    yield KERNEL.launch({"T": TYPES[problem.dtype], **config}, grid, THREADS, (*tensors, *structs))


def work(problem, config, target):
    return (of_elements(problem, THREADS, THREADS),)


DESIGN = Design(configs=lambda problem, target: configs_of("THREADS", (THREADS,)), launches=launches, work=work)
