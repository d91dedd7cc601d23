"""The launch that flips the filters."""

from tritonkernels.operations.conv2d_input.as_conv2d import FLIPPED as THREADS

from ...conv2d.parts.operands import sizes, sources
from ...launch import CudaLaunch, ceil_div

SOURCES = sources("conv2d_input/parts/flipped.cuh", [f"conv2d_input::flipped<{{T}}, {THREADS}>"])


def flip(problem, weight, filters):
    source, blocks = SOURCES[problem.dtype], ceil_div(filters.numel(), THREADS)
    arguments = weight, filters, sizes(problem), weight.stride(), filters.stride()
    return CudaLaunch(source, source.expressions[0], (blocks,), (THREADS, 1, 1), arguments)
