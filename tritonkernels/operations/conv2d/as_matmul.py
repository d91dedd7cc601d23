"""A filter of one tap as a product of matrices: pixels are the rows of two of them, channels the columns.

No data is moved: channels are contiguous in channels_last and a plane apart in NCHW, which only changes strides. The product is
transposed if needed so that rows of the result are contiguous, as TMA requires: (pixels, C) (C, K) in channels_last, else (K,
C) (C, pixels), image by image. Images, or even lines, that are not evenly spaced become a batch.
"""

import functools

import torch

from ...batches import merges
from ...operation import Reduction
from ...validate import LARGEST_SIZE
from ..matmul.prepare import prepare


@functools.lru_cache(1024)
def refuses(problem):
    one_tap, no_stride = (problem.r, problem.s) == (1, 1), problem.stride == (1, 1)
    every_pixel = (problem.p, problem.q) == (problem.h, problem.w)
    pixels = problem.n * problem.p * problem.q
    faults = {
        f"a filter of {problem.r} x {problem.s}": not one_tap,
        "a stride": not no_stride,
        "padding": problem.padding != (0, 0) or (one_tap and no_stride and not every_pixel),
        "groups": problem.groups != 1,
        f"{pixels} pixels": pixels > LARGEST_SIZE,
    }
    found = [what for what, is_so in faults.items() if is_so]
    return f"a product of matrices has every pixel and one tap, and this has {' and '.join(found)}" if found else None


def steps(problem, arrange, input, weight, bias, out):
    pixels, results = (t.permute(0, 2, 3, 1) for t in (input, out))
    while pixels.ndim > 2 and all(merges(t, t.ndim - 3) for t in (pixels, results)):
        pixels, results = pixels.flatten(-3, -2), results.flatten(-3, -2)
    yield _product(problem, pixels, weight[:, :, 0, 0], bias, results.stride(-1) == 1, results)


def _product(problem, pixels, filters, bias, channels_inside, results=None):
    """The Call of matmul; pixels (..., C), filters (K, C), results (..., K)."""
    if channels_inside:
        return prepare(pixels, filters.mT, precision=problem.precision, bias=bias, out=results)
    bias, results = None if bias is None else bias[:, None], None if results is None else results.mT
    return prepare(filters, pixels.mT, precision=problem.precision, c=bias, out=results)


@functools.lru_cache(1024)
def problems(problem):
    """The problems of contiguous tensors; `steps` sees how they really lie."""

    def empty(*shape):
        return torch.empty(shape, dtype=problem.dtype, device="meta")

    last, plane = problem.channels_last, problem.p * problem.q
    pixels = empty(problem.n * plane, problem.c) if last else empty(problem.n, problem.c, plane).mT
    bias = empty(problem.k) if problem.has_bias else None
    return (_product(problem, pixels, empty(problem.k, problem.c), bias, last).problem,)


TO_MATMUL = Reduction(
    to="matmul",
    summary="a filter of one tap without stride, padding and groups",
    refuses=refuses,
    problems=problems,
    steps=steps,
    formerly="pointwise",
)
