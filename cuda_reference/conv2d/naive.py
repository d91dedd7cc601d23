"""conv2d, naive: the launches of naive.cuh."""

from tritonkernels.conv2d.parts.work import of_outputs, strip
from tritonkernels.design import Design

from ..launch import Kernel, ceil_div, configs_of
from .parts.operands import TYPES, arguments

THREADS = 128
KERNEL = Kernel("conv2d::naive<{T}, {THREADS}>")


def launches(problem, config, *tensors):
    grid = (ceil_div(problem.outputs, THREADS),)
    yield KERNEL.launch({"T": TYPES[problem.dtype], **config}, grid, THREADS, arguments(problem, *tensors))


def work(problem, config, target):
    piece = strip(problem, 1, THREADS)
    return (of_outputs(problem, target, ceil_div(problem.outputs, THREADS), THREADS, piece, 1, problem.terms, THREADS),)


DESIGN = Design(configs=lambda problem, target: configs_of("THREADS", (THREADS,)), launches=launches, work=work)
