"""Partial sums of the gradients with respect to weight and bias: many programs share one sum, each with its range of positions.

A filter has few elements and a batch of images many positions: 81 sums of two million products, for 3 -> 3 channels of 3 x 3 on
an image. So positions are split over programs, partial sums go through a workspace, and a second kernel adds them up in a
fixed order, never by atomics: the same bits every time. It costs a launch and 8 bytes a partial sum.

Mirrors cuda_reference/conv2d/parts/splits.cuh.
"""

from typing import Any, NamedTuple

from ..integers import ceil_div
from ..launch import TritonLaunch
from ..operations.conv2d.work import addition
from ..problem import needs_wide_offsets
from ..workspace import partial_sums
from .epilogue import rounded
from .last_to_arrive import sum_of_splits
from .overlap import wait_for_earlier_kernels
from .structs import Filters
from .tiles import block_of
from .triton import tl, triton


class Sums(NamedTuple):
    """Partial sums (splits, K, C / groups, R, S); of a single split, the result itself."""

    ptr: Any
    split: Any
    k: Any
    c: Any
    r: Any
    s: Any


@triton.jit
def position(index, P, Q):
    """(image, p, q) of positions of the output, q fastest."""
    return index // Q // P, index // Q % P, index % Q


@triton.jit
def count_positions(N, P, Q, WIDE: tl.constexpr):
    """N P Q. tl.cast also takes a size of 1, which Triton compiles as a constant."""
    return (tl.cast(N, tl.int64) if WIDE else N) * P * Q


@triton.jit
def element(index, C, R, S):
    """(k, c, r, s) of elements of a weight, s fastest."""
    return index // S // R // C, index // S // R % C, index // S % R, index % S


@triton.jit
def _add_splits_kernel(
    sums, out: Filters, total, splits, C, R, S, BLOCK: tl.constexpr, BLOCK_S: tl.constexpr, WIDE: tl.constexpr
):
    """sums (splits, total), contiguous; out (K, C, R, S). BLOCK_S splits are added at a time. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    index = block_of(tl.program_id(0), BLOCK, WIDE)
    if WIDE:
        total = tl.cast(total, tl.int64)  # of one element it is a constant
    inside = index < total
    result = sum_of_splits(sums + index, inside, splits, total, BLOCK_S)
    k, c, r, s = element(index, C, R, S)
    out_ptrs = out.ptr + k * out.k + c * out.c + r * out.r + s * out.s
    tl.store(out_ptrs, rounded(result, out.ptr.dtype.element_ty), mask=inside)


ADD = triton.Config({"BLOCK": 32, "BLOCK_S": 32}, num_warps=4, num_stages=1)
ADD_INTERPRETED = triton.Config({"BLOCK": 2**12, "BLOCK_S": 4})


def launches_of_splits(kernel, grid, config, before, after, out, wide, **constants):
    """kernel(*before, Sums, *after), then with several SPLITS the launch that adds them up; out is (K, C / groups, R, S)."""
    splits = config.kwargs["SPLITS"]
    if splits == 1:
        yield TritonLaunch(kernel, grid, config, *before, Sums(out, 0, *out.stride()), *after, WIDE=wide, **constants)
        return
    sums = partial_sums(splits, out.numel(), out)
    places = Sums(sums, *sums.view(splits, *out.shape).stride())
    wide = wide or needs_wide_offsets(sums)
    yield TritonLaunch(kernel, grid, config, *before, places, *after, WIDE=wide, **constants)
    add = ADD if out.device.type != "cpu" else ADD_INTERPRETED
    blocks = ceil_div(out.numel(), add.kwargs["BLOCK"])
    sizes = out.numel(), splits, *out.shape[1:]
    yield TritonLaunch(_add_splits_kernel, (blocks,), add, sums, Filters.of(out), *sizes, WIDE=wide)


def added(problem, splits):
    """The Work of adding them up."""
    return addition(problem, splits, 128, ADD.kwargs["BLOCK_S"])
