"""Which design a CUDA call gets: the model's choice (tritonkernels/conv2d/parts/regime.py), except for odd channel counts."""

from tritonkernels.conv2d.parts import regime

from .runs import together


def prefer(problem, target):
    """As regime.prefer, but without `depthwise_channels` where its lanes would load channels one by one."""
    whole = problem.k % together(problem.dtype) == 0
    return tuple(name for name in regime.prefer(problem, target) if whole or name != "depthwise_channels")
