"""The arguments of conv2d_weight's kernels, with strides in the order of conv2d_weight::Strides (tile.cuh)."""

from ...conv2d.parts.operands import sizes


def arguments(problem, input, grad_output, out):
    """(tensors, (Geometry, Strides))."""
    strides = (*input.stride(), *grad_output.stride(), *out.stride())
    return (input, grad_output, out), (sizes(problem), strides)
