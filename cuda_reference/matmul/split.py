"""The launches that split FP32 operands into planes (split.cuh)."""

import torch

from tritonkernels.matmul.schemes import of_batch, room

from ..launch import CudaLaunch, Source, ceil_div

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}  # of planes
LARGEST = "matmul::largest_of_rows<float>"
SOURCE = Source("matmul/split.cuh", (LARGEST, *(f"matmul::split<{name}>" for name in TYPES.values())))


def split(matrix, precision):
    """(the launches that fill them, planes, largest) of an FP32 matrix (batch, R, K), as in schemes.room; first `largest`."""
    once, planes, largest = room(matrix, precision)
    batch, r, k = once.shape
    grid, block = (batch * ceil_div(r, 64) * ceil_div(k, 64),), (256, 1, 1)
    launches = []
    if largest is not None and once.numel():
        arguments = once, largest, r, k, once.stride()
        launches.append(CudaLaunch(SOURCE, LARGEST, grid, block, arguments))
    if once.numel():
        arguments = once, largest, planes, r, k, planes.shape[-1], once.stride(), planes.stride(0)
        launches.append(CudaLaunch(SOURCE, f"matmul::split<{TYPES[planes.dtype]}>", grid, block, arguments))
    return launches, *of_batch(matrix, planes, largest)
