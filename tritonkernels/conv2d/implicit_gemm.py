"""conv2d, implicit GEMM: a matrix product of (pixels, taps x channels) and (taps x channels, output channels) on tensor cores.

Every output is an inner product of R S C terms, so a convolution is a product of M = N P Q rows, one per output pixel, and
N = K columns. The left matrix holds each input R S times and is never written (im2col would write it): its elements are
fetched from where they lie when a slice of it is staged in shared memory, zeros where a tap falls on padding. The rows are
one flat axis over images and pixels, so planes of 7 x 7 fill tiles as well as large ones.

The loop has no division. A slice is BLOCK_K channels of one tap, (r, s, c), and the next one follows by additions and carries.
Where a group has few channels, that would pad each tap to BLOCK_K: FLAT slices run over taps instead, every lane with an
(r, s, c) of its own, advanced alike. So 7 x 7 taps of 3 channels are 3 slices of 64 products, not 49.

Lanes go along channels where these lie side by side (channels_last), 16 bytes each, or along pixels (NCHW, PIXELS_INSIDE);
then the tile is the transposed one, output channels times pixels. Weights whose channels are apart are copied once with
channels side by side where many pixels read them. So are both operands of tf32 on Hopper, rounded on the way, where they are
read often: WGMMA does not round what it reads from shared memory, and waits for what comes from registers.

Where there are few tiles, SPLIT_K programs share one, each with its range of slices; the last of them to arrive adds their
sums up in order, so the bits are always the same.

Mirrors cuda_reference/conv2d/implicit_gemm.cuh.
"""

import math

import torch
import triton
import triton.language as tl

from ..batches import merges
from ..design import Design
from ..language.dot import faithful_dot, widened
from ..language.epilogue import rounded
from ..language.packed import packed
from ..language.splits import last_to_arrive, sum_in_order
from ..language.tiles import grouped_tile, span
from ..launch import TritonLaunch
from ..matmul.parts.operands import lacks_products
from ..problem import needs_wide_offsets
from ..workspace import counters
from .operands import arguments
from .slices import channels_of_a_tap, configs, count_slices, count_tiles

ENOUGH = 32  # tiles of pixels


@triton.jit
def along(x, AXIS: tl.constexpr):
    """A vector along that axis of a tile."""
    return tl.expand_dims(x, 1 - AXIS)


@triton.jit
def sum_in_vectors(left, right, VECTOR: tl.constexpr, AXIS: tl.constexpr):
    """left + right, of which the compiler is told what it cannot see: along that axis there are aligned runs of VECTOR.

    Without any, runs of 2 that begin anywhere: no vectors come of that, but lanes go that way (Triton 3.6 sent them the other).
    """
    RUN: tl.constexpr = max(2, VECTOR)
    if AXIS == 0:
        return tl.multiple_of(tl.max_contiguous(left + right, (RUN, 1)), (VECTOR, 1))
    else:
        return tl.multiple_of(tl.max_contiguous(left + right, (1, RUN)), (1, VECTOR))


@triton.jit
def both_in_vectors(left, right, VECTOR: tl.constexpr, AXIS: tl.constexpr):
    """left and right, masks: alike in such runs."""
    return tl.max_constancy(left & right, (VECTOR, 1)) if AXIS == 0 else tl.max_constancy(left & right, (1, VECTOR))


@triton.jit
def next_slice(r, s, c, step_r, step_s, step_c, S, CHANNELS):
    """(r, s, c) a slice further: digits of a number, with carries."""
    c += step_c
    carry = c >= CHANNELS
    c = tl.where(carry, c - CHANNELS, c)
    s += step_s + carry
    carry = s >= S
    s = tl.where(carry, s - S, s)
    return r + step_r + carry, s, c


@triton.jit
def _implicit_gemm_kernel(
    input_ptr,  # (N, C, H, W)
    weight_ptr,  # (K, C / GROUPS, R, S)
    bias_ptr,  # (K,), None without HAS_BIAS
    out_ptr,  # (N, K, P, Q)
    workspace_ptr,  # (TILES, SPLIT_K, BLOCK_M * BLOCK_N), None where SPLIT_K is 1
    counters_ptr,  # (TILES,) zeros, None where SPLIT_K is 1
    H,
    W,
    P,
    Q,
    C_PER_GROUP,
    K_PER_GROUP,
    GROUPS,
    R,
    S,
    STEP_H,
    STEP_W,
    PADDING_H,
    PADDING_W,
    DILATION_H,
    DILATION_W,
    stride_in,
    stride_ic,
    stride_ih,
    stride_iw,
    stride_wk,
    stride_wc,
    stride_wr,
    stride_ws,
    stride_bias,
    stride_on,
    stride_ok,
    stride_op,
    stride_oq,
    pixels,  # N P Q
    channels,  # of a tap, in slices: C_PER_GROUP, or the next multiple of BLOCK_K
    slices,
    slices_per_split,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr,
    FLAT: tl.constexpr,  # slices run over taps
    PIXELS_INSIDE: tl.constexpr,  # of the input, pixels are closer together than channels
    OUT_PIXELS_INSIDE: tl.constexpr,
    WHOLE: tl.constexpr,  # every slice is BLOCK_K channels, none left over
    X_VECTOR: tl.constexpr,  # channels of the input that lie side by side and aligned
    W_VECTOR: tl.constexpr,  # of a filter
    HAS_BIAS: tl.constexpr,
    PRECISION: tl.constexpr,
    ARE_TF32: tl.constexpr,  # rounded before
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    M_AXIS: tl.constexpr = 1 if PIXELS_INSIDE else 0  # of the result's tile; K is the other of an operand's
    N_AXIS: tl.constexpr = 1 - M_AXIS
    tiles_m = tl.cdiv(pixels, BLOCK_M)
    tiles_n = tl.cdiv(K_PER_GROUP, BLOCK_N)
    tiles = tiles_m * tiles_n
    split = tl.program_id(0) // (GROUPS * tiles)
    index = tl.program_id(0) % (GROUPS * tiles)
    group = index // tiles
    tile_m, tile_n = grouped_tile(index % tiles, tiles_m, tiles_n, GROUP_M)
    if WIDE:
        group = group.to(tl.int64)
        tile_m = tile_m.to(tl.int64)
    pixel = span(tile_m * BLOCK_M, BLOCK_M, WIDE)
    q = pixel % Q
    p = pixel // Q % P
    image = pixel // Q // P
    k = span(tile_n * BLOCK_N, BLOCK_N, WIDE)

    h0 = along(p * STEP_H - PADDING_H, M_AXIS)
    w0 = along(q * STEP_W - PADDING_W, M_AXIS)
    origin = along(image * stride_in + group * C_PER_GROUP * stride_ic, M_AXIS) + h0 * stride_ih + w0 * stride_iw
    of_image = along(pixel < pixels, M_AXIS)
    of_filter = along(k < K_PER_GROUP, N_AXIS)
    filters = along((group * K_PER_GROUP + k) * stride_wk, N_AXIS)

    first = split * slices_per_split
    at = first * BLOCK_K
    if FLAT:
        at = span(at, BLOCK_K, WIDE)
    elif WIDE:
        at = at.to(tl.int64)
    c = at % channels
    s = at // channels % S
    r = at // channels // S
    step_c = BLOCK_K % channels
    step_s = BLOCK_K // channels % S
    step_r = BLOCK_K // channels // S

    SUMS: tl.constexpr = tl.float64 if out_ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK_N, BLOCK_M) if PIXELS_INSIDE else (BLOCK_M, BLOCK_N), SUMS)
    for _ in range(first, min(first + slices_per_split, slices)):
        channel = c if FLAT else c + tl.arange(0, BLOCK_K)
        of_x = channel * stride_ic + (r * DILATION_H * stride_ih + s * DILATION_W * stride_iw)
        of_w = channel * stride_wc + (r * stride_wr + s * stride_ws)
        h = h0 + (along(r * DILATION_H, N_AXIS) if FLAT else r * DILATION_H)
        w = w0 + (along(s * DILATION_W, N_AXIS) if FLAT else s * DILATION_W)
        x_inside = of_image & (h >= 0) & (h < H) & (w >= 0) & (w < W)
        w_inside = of_filter
        if not WHOLE:
            inside = r < R if FLAT else channel < C_PER_GROUP
            x_inside = both_in_vectors(x_inside, along(inside, N_AXIS), X_VECTOR, N_AXIS)
            w_inside = both_in_vectors(w_inside, along(inside, M_AXIS), W_VECTOR, M_AXIS)
        x_ptrs = input_ptr + sum_in_vectors(origin, along(of_x, N_AXIS), X_VECTOR, 1)
        w_ptrs = weight_ptr + sum_in_vectors(filters, along(of_w, M_AXIS), W_VECTOR, M_AXIS)
        x = tl.load(x_ptrs, mask=x_inside, other=0)
        weight = tl.load(w_ptrs, mask=w_inside, other=0)
        if PIXELS_INSIDE:
            x, weight = weight, x
        acc = faithful_dot(x, weight, acc, PRECISION, ARE_TF32)
        r, s, c = next_slice(r, s, c, step_r, step_s, step_c, S, channels)

    of_pixel = along(image * stride_on + p * stride_op + q * stride_oq, M_AXIS)
    of_k = along((group * K_PER_GROUP + k) * stride_ok, N_AXIS)
    out_ptrs = out_ptr + (sum_in_vectors(of_pixel, of_k, 1, M_AXIS) if OUT_PIXELS_INSIDE else of_pixel + of_k)
    if HAS_BIAS:
        bias_ptr += group * K_PER_GROUP * stride_bias
    bias_ptrs = bias_ptr + along(k, N_AXIS) * stride_bias if HAS_BIAS else None
    if SPLIT_K == 1:
        finish(acc, bias_ptrs, out_ptrs, of_image, of_filter, HAS_BIAS)
    else:
        SIZE: tl.constexpr = BLOCK_M * BLOCK_N
        within = tl.arange(0, acc.shape[0])[:, None] * acc.shape[1] + tl.arange(0, acc.shape[1])[None, :]
        place = workspace_ptr + index.to(tl.int64) * (SPLIT_K * SIZE) + within
        tl.store(place + split * SIZE, acc)
        if last_to_arrive(counters_ptr + index, SPLIT_K):
            finish(sum_in_order(place, SIZE, SPLIT_K), bias_ptrs, out_ptrs, of_image, of_filter, HAS_BIAS)


@triton.jit
def finish(acc, bias_ptrs, out_ptrs, of_image, of_filter, HAS_BIAS: tl.constexpr):
    """Add the bias and write what of a tile lies inside."""
    if HAS_BIAS:
        acc += widened(tl.load(bias_ptrs, mask=of_filter, other=0), acc.dtype)
    tl.store(out_ptrs, rounded(acc, out_ptrs.dtype.element_ty), mask=of_image & of_filter)


def refuses(problem, target):
    return lacks_products(problem.precision, target)


def launches(problem, config, input, weight, bias, out):
    tile, split_k = config.kwargs, config.kwargs["SPLIT_K"]
    tiles, slices = count_tiles(problem, tile), count_slices(problem, tile)
    are_tf32 = tile["PACK"] and merges(input, 2) and merges(weight, 2)
    if are_tf32:
        copies, input = _copied(input, to_tf32=True)
        yield from copies
    if are_tf32 or (merges(weight, 2) and _pays_to_copy(problem, tile, weight)):
        copies, weight = _copied(weight, to_tf32=are_tf32)
        yield from copies
    pixels_inside, out_pixels_inside = (t.stride(3) < t.stride(1) for t in (input, out))
    given = arguments(problem, input, weight, bias, out) | {
        "pixels": problem.n * problem.p * problem.q,
        "channels": channels_of_a_tap(problem, tile),
        "slices": slices,
        "slices_per_split": triton.cdiv(slices, split_k),
        "PIXELS_INSIDE": pixels_inside,
        "OUT_PIXELS_INSIDE": out_pixels_inside,
        "WHOLE": problem.c // problem.groups % tile["BLOCK_K"] == 0 and not tile["FLAT"],
        "X_VECTOR": 1 if pixels_inside else _side_by_side(input, problem),
        "W_VECTOR": _side_by_side(weight, problem),
        "PRECISION": problem.precision,
        "ARE_TF32": are_tf32,
        "WIDE": needs_wide_offsets(input, weight, bias, out),
        "workspace_ptr": None,
        "counters_ptr": None,
    }
    if split_k > 1:
        sums = torch.float64 if problem.dtype == torch.float64 else torch.float32
        shape = (tiles, split_k, tile["BLOCK_M"] * tile["BLOCK_N"])
        given["workspace_ptr"] = torch.empty(shape, dtype=sums, device=out.device)
        given["counters_ptr"] = counters(tiles, out)
    yield TritonLaunch(_implicit_gemm_kernel, (tiles * split_k,), config, given)


def _pays_to_copy(problem, tile, weight):
    """Whether the channels of a filter lie apart, and ENOUGH tiles read them again and again."""
    apart = weight.stride(1) != 1 and weight.shape[1] > 1
    return apart and problem.n * problem.p * problem.q >= ENOUGH * tile["BLOCK_M"] and not tile["FLAT"]


def _copied(t, to_tf32):
    """(the launches that fill it, the copy): with channels side by side, and aligned for vectors."""
    launches, copy = packed(t.flatten(2), to_tf32)
    return launches, copy.unflatten(2, t.shape[2:])


def _side_by_side(t, problem):
    """How many channels of a group lie side by side and begin at a multiple of as many bytes, wherever they are: up to 16."""
    apart = [stride for dim, (size, stride) in enumerate(zip(t.shape, t.stride())) if dim != 1 and size > 1]
    if t.stride(1) != 1:
        return 1
    whole = math.gcd(problem.c // problem.groups, *apart) * t.element_size()
    return max(1, math.gcd(whole, t.data_ptr(), 16) // t.element_size())


DESIGN = Design(
    name="implicit_gemm",
    summary="a matrix product over taps and channels on tensor cores, inputs fetched from where they lie",
    mirrors="implicit_gemm",
    refuses=refuses,
    configs=configs,
    launches=launches,
)
