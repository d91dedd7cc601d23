"""What every launch takes: conv2d's arguments, with the tensors' strides under the names that conv2d gives them."""

from ...conv2d.parts.operands import arguments as arguments_of_conv2d


def arguments(problem, input, grad_output, out):
    return arguments_of_conv2d(problem, input, out, None, grad_output) | {"grad_ptr": grad_output}
