"""conv2d, depthwise_channels: runs of outputs of four channels a lane, for channels_last and one small filter a channel.

There a tap is four loads from far apart for a lane, as many as the inputs it meets. So runs have up to eight outputs, all rows
that they meet are unrolled, strided ones too, and all taps of a 3 x 3 filter stay in registers.

Mirrors cuda_reference/conv2d/depthwise_channels.cuh.
"""

import triton
import triton.language as tl

from ..design import Design
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.tiles import span
from ..launch import TritonLaunch
from .parts.operands import arguments
from .parts.runs import best_run, one_filter_each, side_by_side
from .parts.sliding import column_of_taps, met

MOST_KEPT = 9  # taps of a filter that stay in registers


@triton.jit
def _depthwise_channels_kernel(
    input_ptr,  # (N, K, H, W)
    weight_ptr,  # (K, 1, R, S)
    bias_ptr,  # (K,), None without HAS_BIAS
    out_ptr,  # (N, K, P, Q)
    N,
    H,
    W,
    P,
    Q,
    GROUPS,  # K
    R: tl.constexpr,
    S: tl.constexpr,
    STEP_H: tl.constexpr,
    STEP_W,
    PADDING_H,
    PADDING_W,
    DILATION_H: tl.constexpr,
    DILATION_W,
    stride_in,
    stride_ic,
    stride_ih,
    stride_iw,
    stride_wk,
    stride_wr,
    stride_ws,
    stride_bias,
    stride_on,
    stride_ok,
    stride_op,
    stride_oq,
    RUN: tl.constexpr,  # outputs below each other
    BLOCK: tl.constexpr,  # runs at a time
    BLOCK_K: tl.constexpr,
    TURNS,  # how many blocks of runs
    KEPT: tl.constexpr,  # all taps stay in registers; else a column of them at a time
    VECTOR: tl.constexpr,  # channels that lie side by side and aligned in input and result
    HAS_BIAS: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    # program -> (runs, channels), the last fastest
    blocks_k = tl.cdiv(GROUPS, BLOCK_K)
    program = tl.program_id(0)
    k = span(program % blocks_k * BLOCK_K, BLOCK_K, WIDE)[None, :]
    k_inside = k < GROUPS
    SUMS: tl.constexpr = tl.float64 if out_ptr.dtype.element_ty == tl.float64 else tl.float32
    bias = tl.zeros((1, BLOCK_K), SUMS)
    if HAS_BIAS:
        bias += widened(tl.load(bias_ptr + k * stride_bias, mask=k_inside, other=0), SUMS)
    filter_ptrs = weight_ptr + k * stride_wk
    columns = ()
    if KEPT:
        for _ in tl.static_range(S):
            columns += (column_of_taps(filter_ptrs, stride_wr, k_inside, R, SUMS),)
            filter_ptrs += stride_ws
    runs = tl.cdiv(P, RUN)
    for turn in range(TURNS):
        block = program // blocks_k + turn * (tl.num_programs(0) // blocks_k)
        if WIDE:
            block = block.to(tl.int64)
        index = span(block * BLOCK, BLOCK, WIDE)  # run -> (image, row, column)
        q = (index % Q)[:, None]
        p = (index // Q % runs * RUN)[:, None]
        image = (index // Q // runs)[:, None]
        valid = (image < N) & k_inside
        h0 = p * STEP_H - PADDING_H
        corner = image * stride_in + h0 * stride_ih + k * stride_ic
        acc = ()
        for _ in tl.static_range(RUN):
            acc += (tl.zeros((BLOCK, BLOCK_K), SUMS),)
        column_ptrs = filter_ptrs
        for s in tl.static_range(S):
            if KEPT:
                taps = columns[s]
            else:
                taps = column_of_taps(column_ptrs, stride_wr, k_inside, R, SUMS)
                column_ptrs += stride_ws
            w = q * STEP_W + (s * DILATION_W - PADDING_W)
            in_column = valid & (w >= 0) & (w < W)
            offsets = corner + w * stride_iw
            for at in tl.static_range((RUN - 1) * STEP_H + (R - 1) * DILATION_H + 1):
                inside = in_column & (h0 + at >= 0) & (h0 + at < H)
                offsets = tl.multiple_of(tl.max_contiguous(offsets, (1, max(2, VECTOR))), (1, VECTOR))
                x = widened(tl.load(input_ptr + offsets, mask=inside, other=0), SUMS)
                acc = met(acc, x, taps, at, STEP_H, DILATION_H)
                offsets += stride_ih
        offsets = image * stride_on + p * stride_op + q * stride_oq + k * stride_ok
        for i in tl.static_range(RUN):
            offsets = tl.multiple_of(tl.max_contiguous(offsets, (1, max(2, VECTOR))), (1, VECTOR))
            tl.store(out_ptr + offsets, rounded(acc[i] + bias, out_ptr.dtype.element_ty), mask=valid & (p + i < P))
            offsets += stride_op


def refuses(problem, target):
    return None if one_filter_each(problem) else "it is for one filter a channel, so small that its runs are unrolled"


def configs(problem, target):
    """Four channels a lane; the interpreter pays by the operation, so it gets many runs at once."""
    a_lane, block_k = 16 // max(4, problem.dtype.itemsize), min(32, triton.next_power_of_2(problem.k))
    run = best_run(problem, 8 if target.is_gpu else 4)
    if not target.is_gpu:
        yield triton.Config({"RUN": run, "BLOCK": 256, "BLOCK_K": block_k, "TURNS": 2})
    # Strided inputs meet fewer taps: what is kept of these serves another block of runs, too
    several = 2 if problem.stride[0] > 1 and problem.r * problem.s <= MOST_KEPT else 1
    for warps, turns in ((4, several), (2, several), (4, 3 - several)):
        tile = {"RUN": run, "BLOCK": target.warp_size * warps * a_lane // block_k, "BLOCK_K": block_k, "TURNS": turns}
        yield triton.Config(tile, num_warps=warps, num_stages=1)


def launches(problem, config, input, weight, bias, out):
    tile = config.kwargs
    runs = problem.n * triton.cdiv(problem.p, tile["RUN"]) * problem.q
    blocks = triton.cdiv(problem.k, tile["BLOCK_K"]) * triton.cdiv(runs, tile["BLOCK"] * tile["TURNS"])
    given = arguments(problem, input, weight, bias, out) | {
        "KEPT": problem.r * problem.s <= MOST_KEPT,
        "VECTOR": min(side_by_side(t, problem.k, 4) for t in (input, out)),
    }
    yield TritonLaunch(_depthwise_channels_kernel, (blocks,), config, given)


DESIGN = Design(
    name="depthwise_channels",
    summary="unrolled runs of outputs of several channels a thread, lanes along channels, for one filter a channel",
    mirrors="conv2d: depthwise, for channels_last",
    refuses=refuses,
    configs=configs,
    launches=launches,
)
