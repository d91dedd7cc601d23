"""conv2d, naive: a lane per output, its whole inner product straight from the caches.

Neighbouring lanes own neighbouring outputs of a row, so they read neighbouring inputs, and the same filter tap. Two loads for a
multiply-add, and each input is fetched K / groups * R * S times: it is what the others are measured by. No lane is idle,
however few outputs a plane has.

Mirrors cuda_reference/conv2d/naive.cuh.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.tiles import span
from ..launch import TritonLaunch
from .parts.operands import arguments


@triton.jit
def _naive_kernel(
    input_ptr,  # (N, C, H, W)
    weight_ptr,  # (K, C / GROUPS, R, S)
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
    BLOCK: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)  # of the output, q fastest
    q = index % Q
    p = index // Q % P
    k = index // Q // P % (K_PER_GROUP * GROUPS)
    image = index // Q // P // (K_PER_GROUP * GROUPS)
    valid = image < N

    SUMS: tl.constexpr = tl.float64 if out_ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK,), SUMS)
    if HAS_BIAS:
        acc += widened(tl.load(bias_ptr + k * stride_bias, mask=valid, other=0), SUMS)
    plane_ptrs = input_ptr + image * stride_in + k // K_PER_GROUP * C_PER_GROUP * stride_ic
    filter_ptrs = weight_ptr + k * stride_wk
    for _ in range(C_PER_GROUP):
        row_ptrs = filter_ptrs  # pointers step by strides: a tap's index times its stride could leave 32 bits
        for r in range(R):
            tap_ptrs = row_ptrs
            for s in range(S):
                h = p * STEP_H + (r * DILATION_H - PADDING_H)
                w = q * STEP_W + (s * DILATION_W - PADDING_W)
                inside = valid & (h >= 0) & (h < H) & (w >= 0) & (w < W)
                x = tl.load(plane_ptrs + h * stride_ih + w * stride_iw, mask=inside, other=0)
                acc += widened(tl.load(tap_ptrs, mask=valid, other=0), SUMS) * widened(x, SUMS)
                tap_ptrs += stride_ws
            row_ptrs += stride_wr
        plane_ptrs += stride_ic
        filter_ptrs += stride_wc
    out_ptrs = out_ptr + image * stride_on + k * stride_ok + p * stride_op + q * stride_oq
    tl.store(out_ptrs, rounded(acc, out_ptr.dtype.element_ty), mask=valid)


def configs(problem, target):
    """One or two outputs a lane; the interpreter pays by the operation, so it gets them all at once."""
    if not target.is_gpu:
        yield triton.Config({"BLOCK": min(2**16, triton.next_power_of_2(max(1, problem.outputs)))})
    for outputs in (1, 2):
        yield triton.Config({"BLOCK": 128 * outputs}, num_warps=128 // target.warp_size, num_stages=1)


def launches(problem, config, *tensors):
    grid = (triton.cdiv(problem.outputs, config.kwargs["BLOCK"]),)
    yield TritonLaunch(_naive_kernel, grid, config, arguments(problem, *tensors))


DESIGN = Design(
    name="naive",
    summary="a thread per output, operands straight from the caches",
    mirrors="conv2d: what the others are measured by",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
