"""GEMV, a warp per row: the lanes of a warp walk one row of A together, and their partial sums are reduced in the warp.

Over `naive`, neighbouring lanes read neighbouring elements, so a request of 32 lanes touches 4 sectors (a thread per row would
touch 32). The matrix is read once, x comes from L1 for all but the first row; 2 FLOP per element keep this bound by bandwidth
at any size. Four steps are in flight, 16 bytes a lane (Little's law: 4.8 TB/s at 700 ns need 3.4 MB in flight, 12 bytes per
thread of a full GPU).

Mirrors cuda_reference/gemv/warp_per_row.cuh, the write-up's design for N = 32.
"""

import torch

from ..config import config_of
from ..integers import ceil_div, next_power_of_2
from ..language.structs import Matrix, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..lesson import lesson


@triton.jit
def _warp_per_row_kernel(
    a: Matrix, x: Vector, y: Vector, out: Vector, M, N, alpha, beta,
    BLOCK_M: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """As many warps as rows: the compiler lays the lanes of a warp along a row. UNROLL steps' loads are independent."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    partial = tl.zeros((BLOCK_M, LANES), tl.float32)
    for first in range(0, N, LANES * UNROLL):
        for step in tl.static_range(UNROLL):
            n = first + step * LANES + tl.arange(0, LANES)
            inside = (m < M)[:, None] & (n < N)[None, :]
            columns = tl.broadcast_to(n[None, :], (BLOCK_M, LANES))  # each warp loads the x of its own row
            of_x = tl.load(x.ptr + columns * x.step, mask=inside, other=0)
            partial += tl.load(a.ptr + m[:, None] * a.row + columns * a.col, mask=inside, other=0) * of_x
    sums = alpha * tl.sum(partial, axis=1)  # by shuffles
    if y is not None:  # None where beta is 0: y is never read then
        sums += beta * tl.load(y.ptr + m * y.step, mask=m < M, other=0)
    tl.store(out.ptr + m * out.step, sums, mask=m < M)


def configs(problem, target):
    """The interpreter pays by the operation: there a program takes all rows."""
    if not target.is_gpu:
        rows, lanes = (min(most, next_power_of_2(max(1, size))) for most, size in ((1024, problem.m), (512, problem.n)))
        return [config_of({"BLOCK_M": rows, "LANES": lanes, "UNROLL": 1})]
    sizes = {"LANES": target.warp_size, "UNROLL": 4}
    return [config_of({"BLOCK_M": warps, **sizes}, num_warps=warps, num_stages=1, maxnreg=128) for warps in (4, 8)]


def launches(problem, config, a, x, y, scale, out):
    operands = Matrix(a, *a.stride()[1:]), *(None if t is None else Vector(t, t.stride(1)) for t in (x, y, out))
    grid = (ceil_div(problem.m, config.kwargs["BLOCK_M"]),)
    yield TritonLaunch(_warp_per_row_kernel, grid, config, *operands, *a.shape[1:], problem.alpha, problem.beta)


DESIGN = lesson(configs, launches, types=((torch.float32, torch.float32),))
