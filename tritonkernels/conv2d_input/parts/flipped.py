"""The filters of the gradient: input and output channels of each group swapped, taps from the last to the first.

A copy of a few kilobytes. Strides alone could express the flip (negative ones), but not the swap where there are groups, and
they would take from the convolution that follows the contiguous filters that it is fast with.

Mirrors cuda_reference/conv2d_input/flipped.cuh.
"""

import triton
import triton.language as tl

from ...language.tiles import span
from ...launch import TritonLaunch


@triton.jit
def _flipped_kernel(
    weight_ptr,  # (K, C_PER_GROUP, R, S)
    filters_ptr,  # (C, K_PER_GROUP, R, S)
    total,  # elements
    C_PER_GROUP,
    K_PER_GROUP,
    R,
    S,
    stride_wk,
    stride_wc,
    stride_wr,
    stride_ws,
    stride_fc,
    stride_fk,
    stride_fr,
    stride_fs,
    BLOCK: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    s = index % S
    r = index // S % R
    k = index // S // R % K_PER_GROUP
    c = index // S // R // K_PER_GROUP
    from_k = c // C_PER_GROUP * K_PER_GROUP + k
    from_ptrs = weight_ptr + from_k * stride_wk + c % C_PER_GROUP * stride_wc
    tap = tl.load(from_ptrs + (R - 1 - r) * stride_wr + (S - 1 - s) * stride_ws, mask=index < total, other=0)
    tl.store(filters_ptr + c * stride_fc + k * stride_fk + r * stride_fr + s * stride_fs, tap, mask=index < total)


CONFIG = triton.Config({"BLOCK": 256}, num_warps=4, num_stages=1)
INTERPRETED = triton.Config({"BLOCK": 2**14})  # which pays by the operation


def flip(problem, weight, filters):
    config = CONFIG if weight.device.type != "cpu" else INTERPRETED
    given = {
        "weight_ptr": weight,
        "filters_ptr": filters,
        "total": filters.numel(),
        "C_PER_GROUP": problem.c // problem.groups,
        "K_PER_GROUP": problem.k // problem.groups,
        "R": problem.r,
        "S": problem.s,
        **dict(zip(("stride_wk", "stride_wc", "stride_wr", "stride_ws"), weight.stride())),
        **dict(zip(("stride_fc", "stride_fk", "stride_fr", "stride_fs"), filters.stride())),
        "WIDE": problem.wide,
    }
    return TritonLaunch(_flipped_kernel, (triton.cdiv(filters.numel(), config.kwargs["BLOCK"]),), config, given)
