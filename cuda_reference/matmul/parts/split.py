"""The launches that split FP32 operands into planes (split.cuh)."""

import torch

from tritonkernels.operations.matmul.schemes import SCHEMES, of_batch, room

from ...common.align import by_patches
from ...launch import Source

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}  # of planes
EXTREMES = "matmul::extremes<float>"
SOURCE = Source("matmul/parts/split.cuh", (EXTREMES, *(f"matmul::split<{name}>" for name in TYPES.values())))


def split(matrix, precision):
    """(launches, planes, ranges): buffers for an FP32 matrix (batch, R, K), as in schemes.room; the launches fill them."""
    once, planes, ranges = room(matrix, precision)
    return splitting(once, planes, ranges, precision), *of_batch(matrix, planes, ranges)


def splitting(matrix, planes, ranges, precision):
    """The launches that fill planes of an FP32 matrix (batch, R, K), whose matrices and rows follow each other, and ranges."""
    return _launches(matrix, ranges, planes, planes.shape[-1], planes.stride(0), planes.stride(2), precision)


def split_side_by_side(matrix, precision, high_first):
    """(launches, planes (batch, R, 2 K), ranges) of a mode with two: a row has the high plane, then the low one, or that first;
    K is padded as in schemes.room."""
    once, planes, ranges = room(matrix, precision)
    planes, padded_k = planes.view(*once.shape[:2], -1), planes.shape[-1]
    low_after_high = padded_k if high_first else -padded_k
    first = planes[..., 0 if high_first else padded_k :]
    launches = _launches(once, ranges, first, padded_k, low_after_high, 2 * padded_k, precision)
    planes, ranges = of_batch(matrix, planes[None], ranges)
    return launches, planes[0], ranges


def _launches(matrix, ranges, planes, padded_k, plane_stride, row_stride, precision):
    """The strides are how far apart planes, and the rows of a plane, are."""
    (_, r, k), launches = matrix.shape, []
    if ranges is not None:
        launches += by_patches(SOURCE, EXTREMES, *matrix.shape, (matrix, ranges, r, k, matrix.stride()))
    scheme = SCHEMES[precision]
    arguments = matrix, ranges, planes, r, k, padded_k, matrix.stride(), plane_stride, row_stride, scheme.small, scheme.weight
    return launches + by_patches(SOURCE, f"matmul::split<{TYPES[planes.dtype]}>", *matrix.shape, arguments)
