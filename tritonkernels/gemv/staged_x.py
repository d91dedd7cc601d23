"""GEMV, x staged: `warp_per_row` with x brought through shared memory, once a block instead of once a warp.

The seed tried it and found no gain: the barrier costs what the fewer loads save. Theory agrees: a warp reads as many bytes of
x as of A, but from L1, which has six times what DRAM can bring an SM (128 bytes a cycle against 21 on an H200), so x never
waits; with a barrier in each step the loads of A wait for each other instead. It is here to be measured.

A tile of rows belongs to one matrix of the batch. Mirrors cuda_reference/gemv/staged_x.cuh.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.tiles import span
from ..launch import TritonLaunch
from .parts.operands import arguments, uncut
from .parts.row_tile import store_rows, within


@triton.jit
def _staged_x_kernel(
    a_ptr,  # (batch, M, N)
    x_ptr,  # (batch, N)
    y_ptr,  # (batch, M), None without HAS_Y
    scale_ptr,  # (M,), None without HAS_SCALE
    out_ptr,  # (batch, M)
    M,
    size,  # N
    alpha,
    beta,
    stride_ab,
    stride_am,
    stride_an,
    stride_xb,
    stride_x,
    stride_yb,
    stride_y,
    stride_s,
    stride_ob,
    stride_o,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HAS_Y: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    tiles = tl.cdiv(M, BLOCK_M)
    batch = tl.program_id(0) // tiles
    if WIDE:
        batch = batch.to(tl.int64)
    m = span(tl.program_id(0) % tiles * BLOCK_M, BLOCK_M, WIDE)
    valid = m < M
    partial = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for n in range(0, size, BLOCK_N):
        cols = span(n, BLOCK_N, WIDE)
        # one-dimensional, so the warps share the load and pass it on through shared memory
        x = tl.load(x_ptr + batch * stride_xb + cols * stride_x, mask=cols < size, other=0).to(tl.float32)
        a_ptrs = a_ptr + batch * stride_ab + m[:, None] * stride_am + cols[None, :] * stride_an
        a = tl.load(a_ptrs, mask=valid[:, None] & (cols < size)[None, :], other=0)
        partial += a.to(tl.float32) * x[None, :]
    store_rows(
        tl.sum(partial, axis=1), batch, m, valid, y_ptr, scale_ptr, out_ptr, alpha, beta,
        stride_yb, stride_y, stride_s, stride_ob, stride_o, HAS_Y, HAS_SCALE,
    )  # fmt: skip


def configs(problem, target):
    if not target.is_gpu:
        yield triton.Config({"BLOCK_M": within(problem.m, 1024), "BLOCK_N": within(problem.n, 512)})
    for warps in (4, 8):
        for steps in (4, 1):
            yield triton.Config({"BLOCK_M": warps, "BLOCK_N": target.warp_size * steps}, num_warps=warps, num_stages=1)


def launches(problem, config, a, x, y, scale, out):
    given = arguments(problem, a, x, y, scale, out, uncut(a))
    grid = (a.shape[0] * triton.cdiv(a.shape[1], config.kwargs["BLOCK_M"]),)
    yield TritonLaunch(_staged_x_kernel, grid, config, given)


DESIGN = Design(
    name="staged_x",
    summary="warp_per_row with x through shared memory, to show that it gains nothing",
    mirrors="gemv seed: x through shared memory",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
