"""Partial sums of the gradients with respect to weight and bias: many programs share one, each has its range of positions.

A filter has few elements and a batch of images many positions: 81 sums of two million products, for 3 -> 3 channels of 3 x 3 on
an image. So positions are split over programs, partial sums go through a workspace, and a second kernel adds them up in a
fixed order, never by atomics: the same bits every time. It costs a launch and 8 bytes a partial sum.
"""

import triton
import triton.language as tl

from ...language.epilogue import rounded
from ...language.splits import sum_of_splits
from ...language.tiles import span
from ...launch import TritonLaunch
from ...problem import needs_wide_offsets
from ...workspace import partial_sums


@triton.jit
def position(index, P, Q):
    """(image, p, q) of positions of the output, q fastest."""
    return index // Q // P, index // Q % P, index % Q


@triton.jit
def _add_splits_kernel(
    sums_ptr,  # (splits, total), contiguous
    out_ptr,  # (K, C_PER_GROUP, R, S)
    total,
    splits,
    C_PER_GROUP,
    R,
    S,
    stride_wk,
    stride_wc,
    stride_wr,
    stride_ws,
    BLOCK: tl.constexpr,
    BLOCK_S: tl.constexpr,  # splits at a time
    WIDE: tl.constexpr,
):
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
        total = total.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    inside = index < total
    sums = sum_of_splits(sums_ptr + index, inside, splits, total, BLOCK_S)
    s = index % S
    r = index // S % R
    c = index // S // R % C_PER_GROUP
    k = index // S // R // C_PER_GROUP
    out_ptrs = out_ptr + k * stride_wk + c * stride_wc + r * stride_wr + s * stride_ws
    tl.store(out_ptrs, rounded(sums, out_ptr.dtype.element_ty), mask=inside)


ADD = triton.Config({"BLOCK": 32, "BLOCK_S": 32}, num_warps=4, num_stages=1)
ADD_INTERPRETED = triton.Config({"BLOCK": 2**12, "BLOCK_S": 4})

SUM_STRIDES = ("stride_wk", "stride_wc", "stride_wr", "stride_ws")


def launches_of_splits(kernel, grid, config, given, out):
    """kernel, given where its sums go, and where there are several splits what adds them up; out is (K, C, R, S).

    The kernel takes sums_ptr, their strides and stride_split, and as many splits as config has SPLITS.
    """
    splits = config.kwargs["SPLITS"]
    if splits == 1:
        to_out = {"sums_ptr": out, "stride_split": 0, **dict(zip(SUM_STRIDES, out.stride()))}
        yield TritonLaunch(kernel, grid, config, given | to_out)
        return
    sums = partial_sums(splits, out.numel(), out)
    contiguous = sums.view(splits, *out.shape).stride()
    wide = given["WIDE"] or needs_wide_offsets(sums)
    to_sums = {"sums_ptr": sums, "WIDE": wide, **dict(zip(("stride_split", *SUM_STRIDES), contiguous))}
    yield TritonLaunch(kernel, grid, config, given | to_sums)
    _, c, r, s = out.shape
    add = {"out_ptr": out, "total": out.numel(), "splits": splits, "C_PER_GROUP": c, "R": r, "S": s}
    chosen = ADD if out.device.type != "cpu" else ADD_INTERPRETED
    to_out = {"sums_ptr": sums, "WIDE": wide, **dict(zip(SUM_STRIDES, out.stride()))}
    yield TritonLaunch(_add_splits_kernel, (triton.cdiv(out.numel(), chosen.kwargs["BLOCK"]),), chosen, add | to_out)
