"""The launch that adds up the splits of K which a first kernel wrote to a workspace (add_parts.cuh), and its Work."""

import functools
import itertools

import torch

from tritonkernels.choice import work

from ...launch import CudaLaunch, Source, ceil_div
from .arguments import TYPES

_RUN, _THREADS = 4, 256  # columns of a thread; threads of a block
_AT_ONCE = 8  # parts that a thread reads together
_GROUPS = 1, 4, 16  # of a block's threads, with a share of the splits each
_TEMPLATE = "matmul::add_parts<{}, {}>"
_RESULTS = (TYPES[dtype] for dtype in (torch.float16, torch.bfloat16, torch.float32))
_SOURCE = Source("matmul/parts/add_parts.cuh", tuple(itertools.starmap(_TEMPLATE.format, itertools.product(_RESULTS, _GROUPS))))


def _groups(splits):
    """The number of groups so that none has more parts than it reads together, if possible."""
    return next((groups for groups in _GROUPS if splits <= groups * _AT_ONCE), _GROUPS[-1])


def _blocks(m, n, splits):
    return ceil_div(m * ceil_div(n, _RUN), _THREADS // _groups(splits))


def addition(problem, splits, sums, arguments):
    """Adds up `sums` (splits * batch, M, N in whole runs); `arguments` are those of a kernel that has an epilogue."""
    _, _, c, bias, out, m, n, _, alpha, beta, activation, strides = arguments
    given = sums, c, bias, out, m, n, splits, sums.shape[2], alpha, beta, activation, strides
    kernel, grid = _TEMPLATE.format(TYPES[problem.out_dtype], _groups(splits)), (out.shape[0] * _blocks(m, n, splits),)
    return CudaLaunch(_SOURCE, kernel, grid, (_THREADS, 1, 1), given)


@functools.lru_cache(work.KNOWN)
def work_of_addition(problem, splits):
    blocks, groups = problem.batch * _blocks(problem.m, problem.n, splits), _groups(splits)
    return work.addition(problem, splits, _RUN * _THREADS // groups, _THREADS, problem.batch, blocks, groups * _AT_ONCE)
