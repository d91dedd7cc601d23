"""The launches that split FP32 operands into planes (split.cuh)."""

import torch

from tritonkernels.matmul.schemes import of_batch, room

from ..launch import CudaLaunch, Source, ceil_div

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}  # of planes
EXTREMES = "matmul::extremes<float>"
SOURCE = Source("matmul/split.cuh", (EXTREMES, *(f"matmul::split<{name}>" for name in TYPES.values())))


def split(matrix, precision):
    """(the launches that fill them, planes, ranges) of an FP32 matrix (batch, R, K), as in schemes.room."""
    once, planes, ranges = room(matrix, precision)
    batch, r, k = once.shape
    grid, block = (batch * ceil_div(r, 64) * ceil_div(k, 64),), (256, 1, 1)
    launches = []
    if ranges is not None and once.numel():
        arguments = once, ranges, r, k, once.stride()
        launches.append(CudaLaunch(SOURCE, EXTREMES, grid, block, arguments))
    if once.numel():
        arguments = once, ranges, planes, r, k, planes.shape[-1], once.stride(), planes.stride(0)
        launches.append(CudaLaunch(SOURCE, f"matmul::split<{TYPES[planes.dtype]}>", grid, block, arguments))
    return launches, *of_batch(matrix, planes, ranges)
