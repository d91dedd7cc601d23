"""conv2d's naive in CUDA C++: its launch."""

from tritonkernels.design import Design

from ..launch import CudaLaunch, ceil_div
from .parts.operands import arguments, sources

THREADS = 128
SOURCES = sources("conv2d/naive.cuh", [f"conv2d::naive<{{T}}, {THREADS}>"])


def launches(problem, config, *tensors):
    source = SOURCES[problem.dtype]
    (kernel,) = source.expressions
    grid = (ceil_div(problem.outputs, THREADS),)
    yield CudaLaunch(source, kernel, grid, (THREADS, 1, 1), arguments(problem, *tensors))


DESIGN = Design(configs=lambda problem, target: [{"THREADS": THREADS}], launches=launches)
