"""The launches that split FP32 operands into planes (split.cuh)."""

import torch

from tritonkernels.operations.matmul.schemes import of_batch, room

from ...common.align import by_patches
from ...launch import Source

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}  # of planes
EXTREMES = "matmul::extremes<float>"
SOURCE = Source("matmul/parts/split.cuh", (EXTREMES, *(f"matmul::split<{name}>" for name in TYPES.values())))


def split(matrix, precision):
    """(launches, planes, ranges): buffers for an FP32 matrix (batch, R, K), as in schemes.room; the launches fill them."""
    once, planes, ranges = room(matrix, precision)
    _, r, k = once.shape
    launches = []
    if ranges is not None:
        launches += by_patches(SOURCE, EXTREMES, *once.shape, (once, ranges, r, k, once.stride()))
    arguments = once, ranges, planes, r, k, planes.shape[-1], once.stride(), planes.stride(0)
    launches += by_patches(SOURCE, f"matmul::split<{TYPES[planes.dtype]}>", *once.shape, arguments)
    return launches, *of_batch(matrix, planes, ranges)
