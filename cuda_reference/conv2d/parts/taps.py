"""The launches of taps.cuh: implicit_gemm's table of taps, and its filters as rows along the reduction."""

import torch

from ...launch import CudaLaunch, Source, ceil_div, holds
from .operands import TYPES, sizes

THREADS = 128


def in_chunks(problem, input):
    """Whether implicit_gemm may copy the input by 16 bytes."""
    return are_in_chunks(input, problem.c // problem.groups)


def are_in_chunks(images, channels):
    """Whether the channels of each pixel and group are contiguous, in whole and aligned chunks of 16 bytes.

    This holds for the padding's pixels too: they are not read, but a cp.async of no bytes needs an aligned address as well.
    """
    chunk = 16 // images.element_size()
    apart = (images.stride(dim) for dim in (0, 2, 3) if dim or images.shape[0] > 1)
    aligned = images.data_ptr() % 16 == 0 and all(stride % chunk == 0 for stride in apart)
    return channels > 0 and channels % chunk == 0 and images.stride(1) == 1 and aligned


def rows_of_filters(problem, weight, chunked):
    """(the filters as rows along the reduction, their pitch in elements, the launches that pack them, if any)."""
    chunk, order = 16 // weight.element_size(), (2, 3, 1) if chunked else (1, 2, 3)
    pitch = weight.stride(0) if weight.shape[0] > 1 else 0
    row = max(1, ceil_div(problem.terms, chunk)) * chunk
    aligned = pitch % chunk == 0 and weight.data_ptr() % 16 == 0
    if _dense(weight, order) and aligned and (not weight.numel() or holds(weight, (weight.shape[0] - 1) * pitch + row)):
        return weight, pitch, ()
    packed = torch.empty(problem.k, row, dtype=weight.dtype, device=weight.device)
    kernels = {inside: f"conv2d::pack_filters<{TYPES[weight.dtype]}, {inside}, {THREADS}>" for inside in ("true", "false")}
    launch = CudaLaunch(
        Source("conv2d/parts/taps.cuh", tuple(kernels.values())),
        kernels[str(chunked).lower()],
        (problem.k * ceil_div(row, THREADS),),
        (THREADS, 1, 1),
        (weight, packed, row, sizes(problem), weight.stride()),
    )
    return packed, row, (launch,)


def _dense(tensor, dims):
    """Whether the dimensions, outermost first, are contiguous in that order."""
    expected = 1
    for dim in reversed(dims):
        if tensor.shape[dim] > 1 and tensor.stride(dim) != expected:
            return False
        expected *= tensor.shape[dim]
    return True


def table_of_taps(problem, input, padded):
    """(the table of `padded` taps, with the place of each tap's input; the launch that writes it)."""
    table = torch.empty(padded, 4, dtype=torch.int32, device=input.device)
    kernel = f"conv2d::table_of_taps<{THREADS}>"
    launch = CudaLaunch(
        Source("conv2d/parts/taps.cuh", (kernel,)),
        kernel,
        (ceil_div(padded, THREADS),),
        (THREADS, 1, 1),
        (table, padded, sizes(problem), input.stride()),
    )
    return table, launch
