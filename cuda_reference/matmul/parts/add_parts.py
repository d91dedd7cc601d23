"""The launch that adds up the splits of K which a first kernel wrote to a workspace (add_parts.cuh), and its Work."""

import torch

from tritonkernels.choice import work

from ...launch import CudaLaunch, Source, ceil_div
from .arguments import TYPES

_KERNELS = {dtype: f"matmul::add_parts<{TYPES[dtype]}>" for dtype in (torch.float16, torch.bfloat16, torch.float32)}
_SOURCE = Source("matmul/parts/add_parts.cuh", tuple(_KERNELS.values()))
_RUN, _THREADS = 4, 256  # columns of a thread; threads of a block


def _blocks(m, n):
    return ceil_div(m * ceil_div(n, _RUN), _THREADS)


def addition(problem, splits, sums, arguments):
    """Of `sums` (splits * batch, M, N in whole runs); `arguments` are those of a kernel that has an epilogue."""
    _, _, c, bias, out, m, n, _, alpha, beta, activation, strides = arguments
    given = sums, c, bias, out, m, n, splits, sums.shape[2], alpha, beta, activation, strides
    kernel, grid = _KERNELS[problem.out_dtype], (_blocks(m, n), out.shape[0])
    return CudaLaunch(_SOURCE, kernel, grid, (_THREADS, 1, 1), given)


def work_of_addition(problem, splits):
    blocks = problem.batch * _blocks(problem.m, problem.n)
    return work.addition(problem, splits, _RUN * _THREADS, _THREADS, problem.batch, blocks)
