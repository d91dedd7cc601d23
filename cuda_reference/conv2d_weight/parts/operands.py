"""What every kernel of the gradient takes, as conv2d_weight::Strides (tile.cuh) wants it."""

from ...conv2d.parts.operands import sizes


def arguments(problem, input, grad_output, out):
    """(tensors, (Geometry, Strides))."""
    strides = (*input.stride(), *grad_output.stride(), *out.stride())
    return (input, grad_output, out), (sizes(problem), strides)
