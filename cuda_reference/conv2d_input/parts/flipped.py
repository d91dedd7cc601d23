"""The launch that flips the filters."""

from tritonkernels.operations.conv2d_input.as_conv2d import FLIPPED as THREADS

from ...conv2d.parts.operands import sizes, sources
from ...launch import CudaLaunch, ceil_div

SIDE = 32  # of a tile of channels that lie inside, of both kinds
KERNELS = f"conv2d_input::flipped<{{T}}, {THREADS}>", f"conv2d_input::flipped_inside<{{T}}, {SIDE}, {THREADS}>"
SOURCES = sources("conv2d_input/parts/flipped.cuh", KERNELS)


def flip(problem, weight, filters):
    source, inside = SOURCES[problem.dtype], filters.stride(1) == 1
    c, k, r, s = filters.shape
    blocks = r * s * ceil_div(k, SIDE) * ceil_div(c, SIDE) if inside else ceil_div(filters.numel(), THREADS)
    arguments = weight, filters, sizes(problem), weight.stride(), filters.stride()
    return CudaLaunch(source, source.expressions[inside], (blocks,), (THREADS, 1, 1), arguments)
