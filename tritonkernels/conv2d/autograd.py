"""conv2d for tensors that require gradients: what autograd asks for in the backward pass are the library's own operations."""

import torch
from torch.autograd.function import once_differentiable


def call(library, prepare, **arguments):
    """library.call, recorded by autograd where an operand wants a gradient; into an `out` nothing is, and `prepare` refuses."""
    operands = [arguments[name] for name in ("input", "weight", "bias")]
    wanted = any(isinstance(t, torch.Tensor) and t.requires_grad for t in operands)
    if wanted and torch.is_grad_enabled() and arguments["out"] is None:
        return _Conv2d.apply(library, prepare, arguments, *operands)
    return library.call(prepare, **arguments)


class _Conv2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, library, prepare, arguments, input, weight, bias):
        result = library.call(prepare, **arguments)
        ctx.library = library
        ctx.geometry = {name: arguments[name] for name in ("stride", "padding", "dilation", "groups")}
        ctx.save_for_backward(input, weight)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        from ..conv2d_bias import prepare as prepare_bias  # these import conv2d
        from ..conv2d_input import prepare as prepare_input
        from ..conv2d_weight import prepare as prepare_weight

        def gradient(prepare, like=None, **arguments):
            out = None if like is None else torch.empty_like(like)  # in its memory format, whatever grad_output's is
            return ctx.library.call(prepare, **arguments, out=out, design=None, config=None)

        input, weight = ctx.saved_tensors
        *_, of_input, of_weight, of_bias = ctx.needs_input_grad
        shared = {"grad_output": grad_output, **ctx.geometry}
        return (
            *(None, None, None),
            gradient(prepare_input, input, input_size=input.shape, weight=weight, **shared) if of_input else None,
            gradient(prepare_weight, weight, input=input, weight_size=weight.shape, **shared) if of_weight else None,
            gradient(prepare_bias, grad_output=grad_output) if of_bias else None,
        )
