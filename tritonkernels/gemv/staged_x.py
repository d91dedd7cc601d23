"""GEMV, x staged: `warp_per_row` with x loaded through shared memory, once per block instead of once per warp.

The write-up found no gain: the barrier costs as much as the saved loads. Theory agrees: a warp reads as many bytes of x as of
A, but from L1, which has six times the bandwidth that an SM gets from DRAM (128 bytes a cycle against 21 on an H200); and the
barrier in each step makes the loads of A wait for each other.

Mirrors cuda_reference/gemv/staged_x.cuh.
"""

import torch

from ..config import config_of
from ..integers import ceil_div, next_power_of_2
from ..language.structs import Matrix, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..lesson import lesson


@triton.jit
def _staged_x_kernel(
    a: Matrix, x: Vector, y: Vector, out: Vector, M, N, alpha, beta, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """As many warps as rows. Of x they take BLOCK_N elements at a time."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    partial = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, N, BLOCK_N):
        n = first + tl.arange(0, BLOCK_N)
        inside = (m < M)[:, None] & (n < N)[None, :]
        of_x = tl.load(x.ptr + n * x.step, mask=n < N, other=0)  # one axis: warps share the load, through shared memory
        of_a = tl.load(a.ptr + m[:, None] * a.row + n[None, :] * a.col, mask=inside, other=0)
        partial += of_a * of_x[None, :]
    sums = alpha * tl.sum(partial, axis=1)  # by shuffles
    if y is not None:  # None where beta is 0: y is never read then
        sums += beta * tl.load(y.ptr + m * y.step, mask=m < M, other=0)
    tl.store(out.ptr + m * out.step, sums, mask=m < M)


def configs(problem, target):
    """The interpreter pays by the operation: there a program takes all rows."""
    if not target.is_gpu:
        rows, columns = (min(most, next_power_of_2(max(1, size))) for most, size in ((1024, problem.m), (512, problem.n)))
        return [config_of({"BLOCK_M": rows, "BLOCK_N": columns})]
    sizes = {"BLOCK_N": 4 * target.warp_size}
    return [config_of({"BLOCK_M": warps, **sizes}, num_warps=warps, num_stages=1) for warps in (4, 8)]


def launches(problem, config, a, x, y, scale, out):
    operands = Matrix(a, *a.stride()[1:]), *(None if t is None else Vector(t, t.stride(1)) for t in (x, y, out))
    grid = (ceil_div(problem.m, config.kwargs["BLOCK_M"]),)
    yield TritonLaunch(_staged_x_kernel, grid, config, *operands, *a.shape[1:], problem.alpha, problem.beta)


DESIGN = lesson(configs, launches, types=((torch.float32, torch.float32),))
