"""GEMV, a warp per row: the lanes of a warp walk one row of A together and their partial sums are reduced in the warp.

Neighbouring lanes read neighbouring elements, so a request of 32 lanes touches 4 sectors (a thread per row would touch 32). The
matrix is read once, x comes from L1 for all but the first row; 2 FLOP per 4 bytes keep this bound by bandwidth at any size.

The tile is (BLOCK_M, BLOCK_N) with one warp per row of it: partial sums stay in registers over the whole walk, BLOCK_N / 32 per
thread and as many loads in flight (Little's law), and are reduced once, by shuffles. Every warp loads x for itself, hence the
broadcast: a one-dimensional load would be shared between warps through shared memory, with a barrier in every step.

Mirrors cuda_reference/gemv/warp_per_row.cuh, the seed's design for N = 32.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.epilogue import blend
from ..language.tiles import span
from ..launch import TritonLaunch


@triton.jit
def _warp_per_row_kernel(
    a_ptr,  # (M, N)
    x_ptr,  # (N,)
    y_ptr,  # (M,), None without HAS_Y
    out_ptr,  # (M,)
    M,
    N,
    alpha,
    beta,
    stride_am,
    stride_an,
    stride_x,
    stride_y,
    stride_o,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HAS_Y: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    rows = span(tl.program_id(0) * BLOCK_M, BLOCK_M, WIDE)
    partial = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for n in range(0, N, BLOCK_N):
        cols = span(n, BLOCK_N, WIDE)
        inside = (rows < M)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * stride_am + cols[None, :] * stride_an, mask=inside, other=0)
        x = tl.load(tl.broadcast_to(x_ptr + (cols * stride_x)[None, :], (BLOCK_M, BLOCK_N)), mask=inside, other=0)
        partial += a * x
    y_ptrs = y_ptr + rows * stride_y if HAS_Y else None
    result = blend(tl.sum(partial, axis=1), y_ptrs, alpha, beta, rows < M, HAS_Y)
    tl.store(out_ptr + rows * stride_o, result, mask=rows < M)


def configs(problem, target):
    """BLOCK_N no wider than the row needs; one warp per row of the tile."""
    if not target.is_gpu:
        yield triton.Config({"BLOCK_M": 1024, "BLOCK_N": min(1024, max(32, triton.next_power_of_2(problem.n)))})
    widths = [w for w in (512, 128, 32) if w // 2 < problem.n] or [32]
    for block_n in widths:
        for block_m in (4, 8):
            yield triton.Config({"BLOCK_M": block_m, "BLOCK_N": block_n}, num_warps=block_m, num_stages=1)


def launches(problem, config, a, x, y, out):
    arguments = {
        "a_ptr": a,
        "x_ptr": x,
        "y_ptr": y,
        "out_ptr": out,
        "M": problem.m,
        "N": problem.n,
        "alpha": problem.alpha,
        "beta": problem.beta,
        "stride_am": a.stride(0),
        "stride_an": a.stride(1),
        "stride_x": x.stride(0),
        "stride_y": 0 if y is None else y.stride(0),
        "stride_o": out.stride(0),
        "HAS_Y": y is not None,
        "WIDE": problem.wide,
    }
    yield TritonLaunch(_warp_per_row_kernel, (triton.cdiv(problem.m, config.kwargs["BLOCK_M"]),), config, arguments)


DESIGN = Design(
    name="warp_per_row",
    summary="the lanes of a warp walk a row together, one reduction at the end",
    mirrors="gemv seed: N = 32",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
