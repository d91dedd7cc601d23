"""conv2d and its gradients under autograd: the gradient of each is a call of the others, so gradients of any order exist.

The three products are the derivatives of one sum, T(input, weight, grad_output) = sum of conv2d(input, weight) * grad_output:
conv2d is that with respect to grad_output, conv2d_input and conv2d_weight are those with respect to the other two. T is linear
in each of the three. So the gradient of a product with respect to one of its operands is T's derivative with respect to that
operand, with the incoming gradient in the place of the product's own result.
"""

import torch

from ... import validate
from .precision import resolved

FACTORS = ("input", "weight", "grad_output")


def differentiable(library, operation, design, config, *, like=None, **arguments):
    """library.call of conv2d or one of its gradients, recorded by autograd if an operand requires a gradient.

    The result has the memory format of `like`. With `out` nothing is recorded, and `prepare` refuses operands that require one.
    """
    if not _is_recorded(arguments):
        if like is not None:
            arguments["out"] = torch.empty_like(like)
        return library.call(operation, design, config, **arguments)
    validate.no_transform(arguments)  # inside a Function torch hides tangents

    def compute():
        return differentiable(library, operation, design, config, like=like, **arguments)  # in forward nothing is recorded

    if operation.name == "conv2d_bias":
        return _ChannelSums.apply(compute, arguments["grad_output"])
    return _Product.apply(compute, library, arguments, *map(arguments.get, (*FACTORS, "bias")))


def _is_recorded(arguments):
    if not torch.is_grad_enabled() or arguments["out"] is not None:
        return False
    operands = map(arguments.get, (*FACTORS, "bias"))
    return any(isinstance(t, torch.Tensor) and t.requires_grad for t in operands)


class _Product(torch.autograd.Function):
    """The result is T's derivative with respect to the one of FACTORS that is None."""

    @staticmethod
    def forward(ctx, compute, library, arguments, input, weight, grad_output, bias):
        result = compute()
        ctx.library = library
        ctx.options = {name: arguments[name] for name in ("stride", "padding", "dilation", "groups")}
        ctx.options["precision"] = resolved(arguments["precision"], result.dtype)  # torch's switches may change until backward
        ctx.save_for_backward(input, weight, grad_output)
        return result

    @staticmethod
    def backward(ctx, incoming):
        def derivative(op, like=None, **arguments):  # in the order of the user function, as library.call requires
            return differentiable(ctx.library, ctx.library.operation(op), None, None, like=like, **arguments, out=None)

        x, w, g = (incoming if t is None else t for t in ctx.saved_tensors)
        *_, of_input, of_weight, of_output, of_bias = ctx.needs_input_grad
        gradients = [None] * 4
        if of_input:
            gradients[0] = derivative("conv2d_input", x, input_size=x.shape, weight=w, grad_output=g, **ctx.options)
        if of_weight:
            gradients[1] = derivative("conv2d_weight", w, input=x, weight_size=w.shape, grad_output=g, **ctx.options)
        if of_output:
            gradients[2] = derivative("conv2d", g, input=x, weight=w, bias=None, **ctx.options)
        if of_bias:
            gradients[3] = derivative("conv2d_bias", grad_output=g)
        return None, None, None, *gradients


class _ChannelSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, grad_output):
        ctx.shape = grad_output.shape
        return compute()

    @staticmethod
    def backward(ctx, incoming):
        return None, incoming[:, None, None].expand(ctx.shape)
