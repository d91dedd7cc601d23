"""conv2d and its gradients under autograd: the gradient of each is a call of the others, so gradients of any order exist.

The three products are the derivatives of one sum, T(input, weight, grad_output) = sum of conv2d(input, weight) * grad_output:
conv2d is that with respect to grad_output, conv2d_input and conv2d_weight are those with respect to the other two. T is linear
in each of the three. So the gradient of a product with respect to one of its operands is T's derivative with respect to that
operand, with the incoming gradient in the place of the product's own result.
"""

import importlib

import torch

from .. import validate
from .parts.precision import resolved

FACTORS = ("input", "weight", "grad_output")


def call(library, prepare, like=None, **arguments):
    """library.call of conv2d, conv2d_input or conv2d_weight, recorded by autograd where an operand wants a gradient.

    The result takes the memory format of `like`. Into an `out` nothing is recorded, and `prepare` refuses.
    """
    if not _is_recorded(arguments):
        return _computed(library, prepare, like, arguments)
    return _Product.apply(library, prepare, like, arguments, *map(arguments.get, (*FACTORS, "bias")))


def call_bias(library, prepare, **arguments):
    """The same of conv2d_bias."""
    if not _is_recorded(arguments):
        return library.call(prepare, **arguments)
    return _ChannelSums.apply(library, prepare, arguments, arguments["grad_output"])


def _is_recorded(arguments):
    if not torch.is_grad_enabled() or arguments["out"] is not None:
        return False
    operands = map(arguments.get, (*FACTORS, "bias"))
    if not any(isinstance(t, torch.Tensor) and t.requires_grad for t in operands):
        return False
    validate.no_transform(arguments)  # inside of a Function torch hides tangents
    return True


def _computed(library, prepare, like, arguments):
    return library.call(prepare, **(arguments if like is None else arguments | {"out": torch.empty_like(like)}))


def _prepare(op):
    return importlib.import_module(f"tritonkernels.{op}").prepare  # these import conv2d


class _Product(torch.autograd.Function):
    """Of FACTORS, the one that is None is the one with respect to which the result is T's derivative."""

    @staticmethod
    def forward(ctx, library, prepare, like, arguments, input, weight, grad_output, bias):
        result = _computed(library, prepare, like, arguments)
        ctx.library = library
        ctx.options = {name: arguments[name] for name in ("stride", "padding", "dilation", "groups")}
        ctx.options["precision"] = resolved(arguments["precision"], result.dtype)  # torch's switches may change until backward
        ctx.save_for_backward(input, weight, grad_output)
        return result

    @staticmethod
    def backward(ctx, incoming):
        def derivative(op, like, **operands):  # in the order of the user function, as library.call wants it
            return call(ctx.library, _prepare(op), like, **operands, **ctx.options, out=None, design=None, config=None)

        x, w, g = (incoming if t is None else t for t in ctx.saved_tensors)
        *_, of_input, of_weight, of_output, of_bias = ctx.needs_input_grad
        gradients = [None] * 4
        if of_input:
            gradients[0] = derivative("conv2d_input", x, input_size=x.shape, weight=w, grad_output=g)
        if of_weight:
            gradients[1] = derivative("conv2d_weight", w, input=x, weight_size=w.shape, grad_output=g)
        if of_output:
            gradients[2] = derivative("conv2d", g, input=x, weight=w, bias=None)
        if of_bias:
            sums = {"grad_output": g, "out": None, "design": None, "config": None}
            gradients[3] = call_bias(ctx.library, _prepare("conv2d_bias"), **sums)
        return None, None, None, None, *gradients


class _ChannelSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, library, prepare, arguments, grad_output):
        ctx.shape = grad_output.shape
        return library.call(prepare, **arguments)

    @staticmethod
    def backward(ctx, incoming):
        return None, None, None, incoming[:, None, None].expand(ctx.shape)
