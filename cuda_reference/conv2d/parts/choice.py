"""Which design a CUDA call gets: the model's choice (tritonkernels/conv2d/parts/regime.py), except for odd channel counts."""

from tritonkernels.conv2d.parts import regime

from .runs import channels_per_load


def prefer(problem, target):
    """As regime.prefer, but without `depthwise_channels` where its lanes would load channels one by one."""
    whole = problem.k % channels_per_load(problem.dtype) == 0
    return tuple(name for name in regime.prefer(problem, target) if whole or name != "depthwise_channels")
