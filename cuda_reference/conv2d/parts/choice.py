"""Which design a CUDA call gets: as the model of tritonkernels/conv2d/parts/regime.py has it, but for odd channels."""

from tritonkernels.conv2d.parts import regime

from .runs import together


def prefer(problem, target):
    """regime.prefer, without `depthwise_channels` where its lanes would have to load channels one by one."""
    whole = problem.k % together(problem.dtype) == 0
    return tuple(name for name in regime.prefer(problem, target) if whole or name != "depthwise_channels")
