"""The arguments of conv2d_weight's kernels, with strides in the order of conv2d_weight::Strides (tile.cuh)."""

from ...conv2d.parts.operands import sizes


def arguments(problem, input, grad_output, out):
    """(tensors, (Geometry, Strides))."""
    strides = (*input.stride(), *grad_output.stride(), *out.stride())
    return (input, grad_output, out), (sizes(problem), strides)


def moves(problem, input, grad_output, positions):
    """tile.cuh's Moves to positions so many further: (of_grad, of_input, h, w) of a slice, a row and an image."""
    (step_h, step_w), columns, rows = problem.stride, max(1, problem.q), max(1, problem.p)

    def move(images, p, q):
        of_grad, of_input = ((t.stride(0), t.stride(2), t.stride(3)) for t in (grad_output, input))
        grad = images * of_grad[0] + p * of_grad[1] + q * of_grad[2]
        return grad, images * of_input[0] + p * step_h * of_input[1] + q * step_w * of_input[2], p * step_h, q * step_w

    a_slice = positions // columns // rows, positions // columns % rows, positions % columns
    return *move(*a_slice), *move(0, 1, -columns), *move(1, -rows, 0)
