"""conv2d, prefetched: `direct` with the next tap's inputs and weights on their way while this one's are multiplied.

In `direct` a tap is loads, a wait and BLOCK_K multiply-adds per input: only other warps hide the 30 cycles of L1, or the 500 of
memory where a channel begins. Here what is multiplied was loaded a tap before, so the loads of the next tap, the first of the
next channel too, have the whole product to arrive. Costs a second set of registers for them: BLOCK_K weights and an input per
position.

One loop walks the taps of all channels: a prefetch across the ends of three nested ones would be written three times.

Mirrors cuda_reference/conv2d/prefetched.cuh.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.dot import widened
from ..launch import TritonLaunch
from .direct import configs, count_tiles, first_sums, load_tap, store_sums, tile_of_program
from .parts.operands import arguments


@triton.jit
def _prefetched_kernel(
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
    BLOCK_K: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    image, group, p, q, k, k_inside = tile_of_program(P, Q, K_PER_GROUP, GROUPS, BLOCK_K, BLOCK_P, BLOCK_Q, WIDE)
    SUMS: tl.constexpr = tl.float64 if out_ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = first_sums(bias_ptr, k, k_inside, stride_bias, BLOCK_P * BLOCK_Q, SUMS, HAS_BIAS)
    input_ptr += image * stride_in + group * C_PER_GROUP * stride_ic
    filters = k * stride_wk
    row_ptr = weight_ptr  # pointers step by strides: a tap's index times its stride could leave 32 bits
    is_one = C_PER_GROUP > 0
    x = load_tap(
        input_ptr, p, q, 0, 0, is_one, H, W,
        STEP_H, STEP_W, PADDING_H, PADDING_W, DILATION_H, DILATION_W, stride_ih, stride_iw,
    )  # fmt: skip
    weights = tl.load(row_ptr + filters, mask=k_inside & is_one, other=0)
    for c in range(C_PER_GROUP):
        next_channel_ptr = weight_ptr + stride_wc
        for r in range(R):
            tap_ptr = row_ptr
            for s in range(1, S):
                tap_ptr += stride_ws
                next_x = load_tap(
                    input_ptr, p, q, r, s, True, H, W,
                    STEP_H, STEP_W, PADDING_H, PADDING_W, DILATION_H, DILATION_W, stride_ih, stride_iw,
                )  # fmt: skip
                next_weights = tl.load(tap_ptr + filters, mask=k_inside, other=0)
                acc += widened(weights, SUMS)[:, None] * widened(x, SUMS)[None, :]
                x = next_x
                weights = next_weights
            next_r = r + 1
            row_ptr += stride_wr
            if next_r == R:
                next_r = 0
                row_ptr = next_channel_ptr
                input_ptr += stride_ic
            is_one = (c + 1 < C_PER_GROUP) | (next_r > 0)
            next_x = load_tap(
                input_ptr, p, q, next_r, 0, is_one, H, W,
                STEP_H, STEP_W, PADDING_H, PADDING_W, DILATION_H, DILATION_W, stride_ih, stride_iw,
            )  # fmt: skip
            next_weights = tl.load(row_ptr + filters, mask=k_inside & is_one, other=0)
            acc += widened(weights, SUMS)[:, None] * widened(x, SUMS)[None, :]
            x = next_x
            weights = next_weights
        weight_ptr = next_channel_ptr
    store_sums(acc, out_ptr, image, p, q, k, k_inside, P, Q, stride_on, stride_ok, stride_op, stride_oq)


def launches(problem, config, *tensors):
    yield TritonLaunch(_prefetched_kernel, (count_tiles(problem, config.kwargs),), config, arguments(problem, *tensors))


DESIGN = Design(
    name="prefetched",
    summary="direct with the next tap's inputs and weights loaded before this one's are multiplied",
    mirrors="conv2d seed: prefetched",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
