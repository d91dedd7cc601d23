"""conv2d_weight, naive: its kernel for each type, and its launch."""

from tritonkernels.design import Design

from ..conv2d.parts.operands import sources
from ..launch import CudaLaunch, ceil_div
from .parts.operands import arguments

THREADS = 128
SOURCES = sources("conv2d_weight/naive.cuh", [f"conv2d_weight::naive<{{T}}, {THREADS}>"])


def configs(problem, target):
    return [{"THREADS": THREADS}]


def launches(problem, config, *operands):
    source, (tensors, structs) = SOURCES[problem.dtype], arguments(problem, *operands)
    grid = (ceil_div(problem.outputs, THREADS),)
    yield CudaLaunch(source, source.expressions[0], grid, (THREADS, 1, 1), (*tensors, *structs))


DESIGN = Design(configs=configs, launches=launches)
