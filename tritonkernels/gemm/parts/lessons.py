"""What the lessons of gemm share, which holds no idea: types and launches."""

import torch

from ...launch import TritonLaunch
from .space import count_tiles
from .tile import blas

FLOAT32 = ((torch.float32, torch.float32),)  # (of the operands, of the result)


def launch(kernel, problem, config, *tensors, **constants):
    """A program for each tile of C."""
    return TritonLaunch(kernel, (count_tiles(problem, config.kwargs),), config, *blas(problem, *tensors), **constants)
