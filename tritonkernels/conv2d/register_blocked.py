"""conv2d, register_blocked: `direct` with four neighbouring outputs a lane, whose inputs slide through registers.

The four outputs of a lane, four sums per output channel, share a window of four inputs. From one tap of a row to the next the
window slides by one: one load instead of four, and a filter tap that is fetched serves four times as many outputs. That takes
taps as far apart as outputs are (DILATION_W = STEP_W, as in any dense filter); otherwise nothing slides, and a window is four
loads. The taps of a row are unrolled, so that their offsets are part of the instructions. The four results are put side by
side before they are written, so that a store is 128 bits where rows allow.

Mirrors cuda_reference/conv2d/register_blocked.cuh.
"""

import triton
import triton.language as tl

from ..design import Design
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.tiles import span
from ..launch import TritonLaunch
from .parts.operands import arguments
from .parts.regime import MOST_TAPS


@triton.jit
def load_column(row_ptrs, w, stride_iw, inside, W):
    """The inputs at columns w of rows, zeros outside of the image."""
    return tl.load(row_ptrs + w * stride_iw, mask=inside & (w >= 0) & (w < W), other=0)


@triton.jit
def _register_blocked_kernel(
    input_ptr,  # (N, C, H, W)
    weight_ptr,  # (K, C / GROUPS, R, S)
    bias_ptr,  # (K,), None without HAS_BIAS
    out_ptr,  # (N, K, P, Q)
    H,
    W,
    P,
    Q,
    C_PER_GROUP,
    K_PER_GROUP,
    GROUPS,
    R,
    S: tl.constexpr,
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
    BLOCK_K: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_Q: tl.constexpr,  # in fours
    SLIDES: tl.constexpr,  # taps are as far apart as outputs
    HAS_BIAS: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    # program -> (image, group, block of output channels, tile row, tile column), the last fastest
    RUNS: tl.constexpr = BLOCK_Q // 4
    tiles_q = tl.cdiv(Q, BLOCK_Q)
    tiles_p = tl.cdiv(P, BLOCK_P)
    blocks_k = tl.cdiv(K_PER_GROUP, BLOCK_K)
    program = tl.program_id(0)
    tile_q = program % tiles_q
    tile_p = program // tiles_q % tiles_p
    block_k = program // (tiles_q * tiles_p) % blocks_k
    group = program // (tiles_q * tiles_p * blocks_k) % GROUPS
    image = program // (tiles_q * tiles_p * blocks_k * GROUPS)
    if WIDE:
        image = image.to(tl.int64)
        group = group.to(tl.int64)
    run = tl.arange(0, BLOCK_P * RUNS)  # of four outputs, the tile row by row
    p = tile_p * BLOCK_P + run // RUNS
    w = (tile_q * BLOCK_Q + run % RUNS * 4) * STEP_W - PADDING_W  # of the first output's first tap
    k = block_k * BLOCK_K + tl.arange(0, BLOCK_K)
    k_inside = k < K_PER_GROUP
    if WIDE:
        p = p.to(tl.int64)
        w = w.to(tl.int64)
    k += group * K_PER_GROUP

    SUMS: tl.constexpr = tl.float64 if out_ptr.dtype.element_ty == tl.float64 else tl.float32
    first = tl.zeros((BLOCK_K, BLOCK_P * RUNS), SUMS)
    if HAS_BIAS:
        first += widened(tl.load(bias_ptr + k * stride_bias, mask=k_inside, other=0), SUMS)[:, None]
    acc0 = first
    acc1 = first
    acc2 = first
    acc3 = first
    input_ptr += image * stride_in + group * C_PER_GROUP * stride_ic
    weight_ptrs = weight_ptr + k * stride_wk
    for _ in range(C_PER_GROUP):
        tap_row_ptrs = weight_ptrs  # pointers step by strides: a tap's index times its stride could leave 32 bits
        for r in range(R):
            h = p * STEP_H + (r * DILATION_H - PADDING_H)
            row_ptrs = input_ptr + h * stride_ih
            inside = (h >= 0) & (h < H)
            tap_ptrs = tap_row_ptrs
            if SLIDES:
                x0 = load_column(row_ptrs, w, stride_iw, inside, W)
                x1 = load_column(row_ptrs, w + STEP_W, stride_iw, inside, W)
                x2 = load_column(row_ptrs, w + 2 * STEP_W, stride_iw, inside, W)
            for s in tl.static_range(S):
                at = w + s * DILATION_W
                if not SLIDES:
                    x0 = load_column(row_ptrs, at, stride_iw, inside, W)
                    x1 = load_column(row_ptrs, at + STEP_W, stride_iw, inside, W)
                    x2 = load_column(row_ptrs, at + 2 * STEP_W, stride_iw, inside, W)
                x3 = load_column(row_ptrs, at + 3 * STEP_W, stride_iw, inside, W)
                tap = widened(tl.load(tap_ptrs, mask=k_inside, other=0), SUMS)[:, None]
                acc0 += tap * widened(x0, SUMS)[None, :]
                acc1 += tap * widened(x1, SUMS)[None, :]
                acc2 += tap * widened(x2, SUMS)[None, :]
                acc3 += tap * widened(x3, SUMS)[None, :]
                if SLIDES:
                    x0 = x1
                    x1 = x2
                    x2 = x3
                tap_ptrs += stride_ws
            tap_row_ptrs += stride_wr
        input_ptr += stride_ic
        weight_ptrs += stride_wc

    side_by_side = tl.join(tl.join(acc0, acc2), tl.join(acc1, acc3))  # (..., 2, 2): 0 1, 2 3
    acc = tl.reshape(side_by_side, (BLOCK_K, BLOCK_P, BLOCK_Q))
    p = span(tile_p * BLOCK_P, BLOCK_P, WIDE)
    q = span(tile_q * BLOCK_Q, BLOCK_Q, WIDE)
    inside = k_inside[:, None, None] & (p < P)[None, :, None] & (q < Q)[None, None, :]
    plane_ptrs = out_ptr + image * stride_on + k[:, None, None] * stride_ok
    out_ptrs = plane_ptrs + p[None, :, None] * stride_op + q[None, None, :] * stride_oq
    tl.store(out_ptrs, rounded(acc, out_ptr.dtype.element_ty), mask=inside)


def refuses(problem, target):
    return f"it unrolls the taps of a row: up to {MOST_TAPS}, not {problem.s}" if problem.s > MOST_TAPS else None


def configs(problem, target):
    """BLOCK_K just covers the output channels of a group. A run of four outputs a thread, two where there are few channels:
    more would spill. Tiles wider than a row come last."""
    most = 16 if problem.stride[1] == problem.dilation[1] else 8  # where inputs do not slide, their loads take the registers
    channels = triton.next_power_of_2(min(most, max(1, problem.k // problem.groups)))
    if not target.is_gpu:
        block_q = min(512, triton.next_power_of_2(max(4, problem.q)))
        block_p = min(2**17 // channels // block_q, triton.next_power_of_2(max(1, problem.p)))
        yield triton.Config({"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q})
    tiles = ((8, 128, 4), (8, 64, 4), (16, 32, 4), (4, 64, 2), (2, 64, 1))
    for block_p, block_q, num_warps in sorted(tiles, key=lambda tile: tile[1] > triton.next_power_of_2(max(1, problem.q))):
        if block_p * block_q <= (8 if channels <= 4 else 4) * target.warp_size * num_warps:
            tile = {"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q}
            yield triton.Config(tile, num_warps=num_warps, num_stages=1)


def launches(problem, config, *tensors):
    tile = config.kwargs
    blocks_k = problem.groups * triton.cdiv(problem.k // problem.groups, tile["BLOCK_K"])
    tiles = triton.cdiv(problem.p, tile["BLOCK_P"]) * triton.cdiv(problem.q, tile["BLOCK_Q"])
    given = arguments(problem, *tensors) | {"SLIDES": problem.stride[1] == problem.dilation[1]}
    yield TritonLaunch(_register_blocked_kernel, (problem.n * blocks_k * tiles,), config, given)


DESIGN = Design(
    name="register_blocked",
    summary="direct with four outputs a lane, whose inputs slide through registers",
    mirrors="conv2d: direct, for few channels",
    refuses=refuses,
    configs=configs,
    launches=launches,
)
