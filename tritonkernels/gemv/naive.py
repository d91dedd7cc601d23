"""GEMV, naive: a thread per row, one column after the other. out (M,) = alpha A (M, N) x (N,) + beta y (M,).

Neighbouring lanes read neighbouring rows, so where rows are contiguous a request touches 32 sectors, of which it uses 4 bytes
each, and the caches must keep the other 28 until they are needed. It reads contiguous columns well, but with a single load in
flight per thread. It is the baseline of the others.

Mirrors cuda_reference/gemv/naive.cuh.
"""

import torch

from ..config import config_of
from ..integers import ceil_div, next_power_of_2
from ..language.structs import Matrix, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..lesson import lesson


@triton.jit
def _naive_kernel(a: Matrix, x: Vector, y: Vector, out: Vector, M, N, alpha, beta, BLOCK_M: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = m < M
    sums = tl.zeros((BLOCK_M,), tl.float32)
    for n in range(N):
        of_x = tl.load(x.ptr + n * x.step)  # the same for all rows
        sums += tl.load(a.ptr + m * a.row + n * a.col, mask=inside, other=0) * of_x
    sums *= alpha
    if y is not None:  # None where beta is 0: y is never read then
        sums += beta * tl.load(y.ptr + m * y.step, mask=inside, other=0)
    tl.store(out.ptr + m * out.step, sums, mask=inside)


def configs(problem, target):
    """A row a lane. The interpreter pays by the operation: there a program takes all rows."""
    if not target.is_gpu:
        return [config_of({"BLOCK_M": min(1024, next_power_of_2(max(1, problem.m)))})]
    warps = (128 // target.warp_size, 1)
    return [config_of({"BLOCK_M": count * target.warp_size}, num_warps=count, num_stages=1) for count in warps]


def launches(problem, config, a, x, y, scale, out):
    operands = Matrix(a, *a.stride()[1:]), *(None if t is None else Vector(t, t.stride(1)) for t in (x, y, out))
    grid = (ceil_div(problem.m, config.kwargs["BLOCK_M"]),)
    yield TritonLaunch(_naive_kernel, grid, config, *operands, *a.shape[1:], problem.alpha, problem.beta)


DESIGN = lesson(configs, launches, types=((torch.float32, torch.float32),))
