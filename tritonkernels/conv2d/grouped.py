"""conv2d, grouped: a lane owns a run of outputs below each other, of several output channels of one group.

Groups of 4 to 64 channels have enough to multiply for bytes not to bind (18 to 288 FLOP a byte moved of fp32), and too few for
the tiles of a matrix product. What binds is how many loads a multiply-add takes. Here a column of taps is loaded once and meets
a whole run: the rows of inputs stream by, each is loaded once and meets up to R taps of KT output channels, so that 3 taps for
4 channels of a run of 7 outputs are 84 multiply-adds of 9 inputs and 3 loads of taps. Runs slide whatever the stride, as their
rows, (RUN - 1) STEP + (R - 1) DILATION + 1 of them, are unrolled.

In channels_last a load brings several input channels of a pixel, 16 bytes, and lanes lie along output channels: those of one
group read the same address, and write side by side. In NCHW lanes lie along W. Filters are packed before, (c, r, s, k) with k
innermost, in the type of the sums, as a lane takes the taps of its KT channels at once: from (K, C / G, R, S) it would gather.

Mirrors cuda_reference/conv2d/grouped.cuh.
"""

import math

import torch
import triton
import triton.language as tl

from ..design import Design
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.packed import MULTIPLE
from ..language.tiles import span
from ..launch import TritonLaunch
from ..problem import needs_wide_offsets
from .parts.grouped_space import at_once, configs
from .parts.operands import arguments
from .parts.runs import refuses, side_by_side
from .parts.sliding import column_of_taps, met

PACKING = triton.Config({"BLOCK_M": 32, "BLOCK_N": 64}, num_warps=4, num_stages=1)


@triton.jit
def _filters_kernel(
    weight_ptr,  # (K, C / GROUPS, R, S)
    taps_ptr,  # (C / GROUPS, R, S, row), a row (GROUPS, LANES_PER_GROUP, KT) and zeros behind it and behind a group
    C_PER_GROUP,
    K_PER_GROUP,
    GROUPS,
    R,
    S,
    LANES_PER_GROUP,
    row,  # of taps: at least GROUPS LANES_PER_GROUP KT
    stride_wk,
    stride_wc,
    stride_wr,
    stride_ws,
    KT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    blocks = tl.cdiv(row, BLOCK_N)
    tap = span(program // blocks * BLOCK_M, BLOCK_M, WIDE)[:, None]
    at = span(program % blocks * BLOCK_N, BLOCK_N, WIDE)[None, :]
    c = tap // S // R
    k = at % (LANES_PER_GROUP * KT)
    group = at // (LANES_PER_GROUP * KT)
    inside = (c < C_PER_GROUP) & (at < row)
    of_k = (group * K_PER_GROUP + k) * stride_wk
    offsets = of_k + (c * stride_wc + tap // S % R * stride_wr + tap % S * stride_ws)
    offsets = tl.multiple_of(tl.max_contiguous(offsets, (2, 1)), (1, 1))  # lanes go that way
    weight = tl.load(weight_ptr + offsets, mask=inside & (group < GROUPS) & (k < K_PER_GROUP), other=0)
    tl.store(taps_ptr + tap * row + at, widened(weight, taps_ptr.dtype.element_ty), mask=inside)


@triton.jit
def channels_of(x, COUNT: tl.constexpr):
    """The COUNT channels of x (.., .., COUNT) as a tuple of (.., .., 1)."""
    if COUNT == 1:
        return (x,)
    elif COUNT == 2:
        even, odd = tl.split(x)
        return tl.expand_dims(even, 2), tl.expand_dims(odd, 2)
    else:
        even, odd = tl.split(tl.reshape(x, (x.shape[0], x.shape[1], 2, 2)))
        x0, x2 = tl.split(even)
        x1, x3 = tl.split(odd)
        return tl.expand_dims(x0, 2), tl.expand_dims(x1, 2), tl.expand_dims(x2, 2), tl.expand_dims(x3, 2)


@triton.jit
def _grouped_kernel(
    input_ptr,  # (N, C, H, W)
    taps_ptr,  # of _filters_kernel
    bias_ptr,  # (K,), None without HAS_BIAS
    out_ptr,  # (N, K, P, Q)
    N,
    H,
    W,
    P,
    Q,
    C_PER_GROUP,
    K_PER_GROUP,
    GROUPS,
    R: tl.constexpr,
    S,
    STEP_H: tl.constexpr,
    STEP_W,
    PADDING_H,
    PADDING_W,
    DILATION_H: tl.constexpr,
    DILATION_W,
    LANES_PER_GROUP,
    row,  # of taps
    stride_in,
    stride_ic,
    stride_ih,
    stride_iw,
    stride_bias,
    stride_on,
    stride_ok,
    stride_op,
    stride_oq,
    RUN: tl.constexpr,  # outputs below each other
    BLOCK: tl.constexpr,  # runs
    LANES: tl.constexpr,  # along output channels, of KT each
    KT: tl.constexpr,
    CHANNELS: tl.constexpr,  # of the input, loaded together: divides C_PER_GROUP
    VECTOR: tl.constexpr,  # of these, that lie side by side and aligned
    OUT_VECTOR: tl.constexpr,  # of KT
    WHOLE: tl.constexpr,  # KT divides K_PER_GROUP
    CHANNELS_INSIDE: tl.constexpr,  # of the result, channels are closer together than pixels
    HAS_BIAS: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    # program -> (runs, lanes), the last fastest: those that read the same inputs run together
    blocks = tl.cdiv(GROUPS * LANES_PER_GROUP, LANES)
    runs = tl.cdiv(P, RUN)
    block = tl.program_id(0) // blocks
    block_k = tl.program_id(0) % blocks
    if WIDE:
        block = block.to(tl.int64)
    index = span(block * BLOCK, BLOCK, WIDE)  # run -> (image, row, column)
    lane = span(block_k * LANES, LANES, WIDE)
    q = (index % Q)[:, None, None]
    p = (index // Q % runs * RUN)[:, None, None]
    image = (index // Q // runs)[:, None, None]
    group = (lane // LANES_PER_GROUP)[None, :, None]
    within = (lane % LANES_PER_GROUP * KT)[None, :, None] + tl.arange(0, KT)[None, None, :]  # its group
    k = group * K_PER_GROUP + within
    valid = (image < N) & (group < GROUPS)

    SUMS: tl.constexpr = taps_ptr.dtype.element_ty
    DOWN: tl.constexpr = 1 if CHANNELS_INSIDE else 2
    ACROSS: tl.constexpr = 2 if CHANNELS_INSIDE else 1
    acc = ()
    for _ in tl.static_range(RUN):
        acc += (tl.zeros((BLOCK, LANES, KT), SUMS),)
    h0 = p * STEP_H - PADDING_H
    # where lanes lie along channels, each loads its own taps (of all runs the same), so that the layout is the results'
    COPIES: tl.constexpr = BLOCK if CHANNELS_INSIDE else 1
    of_taps = tl.broadcast_to(lane[None, :, None] * KT + tl.arange(0, KT)[None, None, :], (COPIES, LANES, KT))
    if WIDE:
        row = row.to(tl.int64)
    corner = image * stride_in + group * C_PER_GROUP * stride_ic + h0 * stride_ih
    for c in range(0, C_PER_GROUP, CHANNELS):
        of_channels = corner + span(c, CHANNELS, WIDE)[None, None, :] * stride_ic
        for s in range(S):
            w = q * STEP_W + (s * DILATION_W - PADDING_W)
            in_column = valid & (w >= 0) & (w < W)
            columns = ()
            for j in tl.static_range(CHANNELS):
                tap_ptrs = taps_ptr + (of_taps + ((c + j) * R * S + s) * row)
                columns += (column_of_taps(tap_ptrs, S * row, None, R, SUMS),)
            offsets = of_channels + w * stride_iw
            for at in tl.static_range((RUN - 1) * STEP_H + (R - 1) * DILATION_H + 1):
                inside = in_column & (h0 + at >= 0) & (h0 + at < H)
                # What the compiler cannot see: vectors. Where there are none, runs of 2 that begin anywhere send lanes that way
                offsets = tl.max_contiguous(offsets, (DOWN, ACROSS if VECTOR == 1 else 1, VECTOR))
                offsets = tl.multiple_of(offsets, (1, 1, VECTOR))
                x = widened(tl.load(input_ptr + offsets, mask=inside, other=0), SUMS)
                x = channels_of(x, CHANNELS)
                for j in tl.static_range(CHANNELS):
                    acc = met(acc, x[j], columns[j], at, STEP_H, DILATION_H)
                offsets += stride_ih

    k_inside = group < GROUPS
    if not WHOLE:
        k_inside = k_inside & (within < K_PER_GROUP)
    bias = tl.zeros((1, LANES, KT), SUMS)
    if HAS_BIAS:
        bias += widened(tl.load(bias_ptr + k * stride_bias, mask=k_inside, other=0), SUMS)
    offsets = image * stride_on + q * stride_oq + p * stride_op + k * stride_ok
    for i in tl.static_range(RUN):
        sums = rounded(acc[i] + bias, out_ptr.dtype.element_ty)
        inside = (image < N) & k_inside & (p + i < P)
        offsets = tl.max_contiguous(offsets, (DOWN, ACROSS if OUT_VECTOR == 1 else 1, OUT_VECTOR))
        offsets = tl.multiple_of(offsets, (1, 1, OUT_VECTOR))
        tl.store(out_ptr + offsets, sums, mask=inside)
        offsets += stride_op


def launches(problem, config, input, weight, bias, out):
    tile, groups = config.kwargs, problem.groups
    channels, outputs = problem.c // groups, problem.k // groups
    vector = side_by_side(input, channels, at_once(problem, tile["KT"]))
    lanes = triton.cdiv(outputs, tile["KT"])
    program = math.lcm(tile["LANES"] * tile["KT"], MULTIPLE)
    row = triton.cdiv(groups * lanes * tile["KT"], program) * program  # whole programs, so that taps need no mask
    sums = torch.float64 if problem.dtype == torch.float64 else torch.float32
    taps = torch.empty((channels, problem.r, problem.s, row), dtype=sums, device=out.device)
    given = arguments(problem, input, weight, bias, out) | {
        "taps_ptr": taps,
        "LANES_PER_GROUP": lanes,
        "row": row,
        "CHANNELS": vector,
        "VECTOR": vector,
        "OUT_VECTOR": side_by_side(out, outputs, tile["KT"]),
        "WHOLE": outputs % tile["KT"] == 0,
        "CHANNELS_INSIDE": problem.channels_last,
        "WIDE": problem.wide or needs_wide_offsets(taps),
    }
    if taps.numel():
        blocks = triton.cdiv(taps[..., 0].numel(), PACKING.kwargs["BLOCK_M"]) * triton.cdiv(row, PACKING.kwargs["BLOCK_N"])
        yield TritonLaunch(_filters_kernel, (blocks,), PACKING, given | {"KT": tile["KT"]})
    runs = problem.n * triton.cdiv(problem.p, tile["RUN"]) * problem.q
    blocks = triton.cdiv(runs, tile["BLOCK"]) * triton.cdiv(groups * lanes, tile["LANES"])
    yield TritonLaunch(_grouped_kernel, (blocks,), config, given)


DESIGN = Design(
    name="grouped",
    summary="runs of outputs of a column a thread, several channels of a group, for groups of few channels",
    mirrors="conv2d: register_blocked, for groups",
    refuses=refuses,
    configs=configs,
    launches=launches,
)
