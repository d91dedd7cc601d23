"""conv2d_weight, naive: a lane per element of the weight, which walks all positions of the output.

Two loads for a multiply-add, straight from the caches; neighbouring lanes own neighbouring taps, so they read the same
grad_output and neighbouring inputs. A small filter keeps but a few lanes busy, each with millions of products: it is what the
others are measured by.

Mirrors cuda_reference/conv2d_weight/naive.cuh.
"""

import triton
import triton.language as tl

from ..conv2d.parts.splits import position
from ..design import Design, takes_everything
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.tiles import span
from ..launch import TritonLaunch
from .parts.operands import arguments


@triton.jit
def _naive_kernel(
    input_ptr,  # (N, C, H, W)
    grad_ptr,  # (N, K, P, Q)
    weight_ptr,  # (K, C / GROUPS, R, S), the result
    N,
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
    stride_on,
    stride_ok,
    stride_op,
    stride_oq,
    BLOCK: tl.constexpr,
    AT_ONCE: tl.constexpr,  # positions
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    program = tl.program_id(0)
    positions = N * P * Q
    if WIDE:
        program = program.to(tl.int64)
        positions = N.to(tl.int64) * P * Q
    index = span(program * BLOCK, BLOCK, WIDE)  # of the weight, s fastest
    s = index % S
    r = index // S % R
    c = index // S // R % C_PER_GROUP
    k = index // S // R // C_PER_GROUP
    valid = k < K_PER_GROUP * GROUPS
    channel_ptrs = (input_ptr + (k // K_PER_GROUP * C_PER_GROUP + c) * stride_ic)[:, None]
    grad_ptrs = (grad_ptr + k * stride_ok)[:, None]
    tap_h = (r * DILATION_H - PADDING_H)[:, None]
    tap_w = (s * DILATION_W - PADDING_W)[:, None]

    SUMS: tl.constexpr = tl.float64 if weight_ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK,), SUMS)
    for first in range(0, positions, AT_ONCE):
        at = span(first, AT_ONCE, WIDE)[None, :]
        image, p, q = position(at, P, Q)
        inside = valid[:, None] & (at < positions)
        h = p * STEP_H + tap_h
        w = q * STEP_W + tap_w
        grad = tl.load(grad_ptrs + image * stride_on + p * stride_op + q * stride_oq, mask=inside, other=0)
        inside &= (h >= 0) & (h < H) & (w >= 0) & (w < W)
        x = tl.load(channel_ptrs + image * stride_in + h * stride_ih + w * stride_iw, mask=inside, other=0)
        acc += tl.sum(widened(grad, SUMS) * widened(x, SUMS), axis=1)
    out_ptrs = weight_ptr + k * stride_wk + c * stride_wc + r * stride_wr + s * stride_ws
    tl.store(out_ptrs, rounded(acc, weight_ptr.dtype.element_ty), mask=valid)


def configs(problem, target):
    """The interpreter pays by the operation, so it takes many positions at once."""
    if not target.is_gpu:
        block = min(2**10, triton.next_power_of_2(max(1, problem.outputs)))
        at_once = min(2**18 // block, triton.next_power_of_2(max(1, problem.terms)))
        yield triton.Config({"BLOCK": block, "AT_ONCE": at_once})
    yield triton.Config({"BLOCK": 128, "AT_ONCE": 1}, num_warps=128 // target.warp_size, num_stages=1)


def launches(problem, config, *tensors):
    grid = (triton.cdiv(problem.outputs, config.kwargs["BLOCK"]),)
    yield TritonLaunch(_naive_kernel, grid, config, arguments(problem, *tensors))


DESIGN = Design(
    name="naive",
    summary="a thread per element of the weight, operands straight from the caches",
    mirrors="conv2d_weight: what the others are measured by",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
