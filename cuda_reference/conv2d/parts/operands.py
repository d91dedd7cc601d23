"""Arguments of the convolution kernels: C++ names of types, and the structs of common.cuh."""

import torch

from ...common.activations import ACTIVATIONS
from ...launch import Kernel, Source

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16", torch.float64: "double"}


def sources(header, templates):
    """A Source for each type; `templates` are the kernels' names with all template arguments except {T}."""
    return {dtype: Source(header, tuple(t.format(T=name) for t in templates)) for dtype, name in TYPES.items()}


def sizes(problem):
    """Geometry."""
    g = problem
    return (g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, *g.stride, *g.padding, *g.dilation, g.groups)


def strides(input, weight, bias, out):
    """Strides."""
    return (*input.stride(), *weight.stride(), 0 if bias is None else bias.stride(0), *out.stride())


def arguments(problem, input, weight, bias, out):
    """(tensors, Geometry, Strides), for every kernel that reads the operands without a copy."""
    return input, weight, bias, out, sizes(problem), strides(input, weight, bias, out)


def followed(kernel):
    """The Kernel of a template's instances with its last parameter, FOLLOWS."""
    return Kernel(kernel.template.removesuffix(">") + ", true>", kernel.space)


def what_follows(problem, residual):
    """A kernel's last arguments: the residual or null, its strides, the activation."""
    return residual, (0, 0, 0, 0) if residual is None else residual.stride(), ACTIVATIONS.index(problem.activation)
