"""What every launch of a convolution takes, in the kernels' types."""

import torch

from ..launch import Source

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16", torch.float64: "double"}


def sources(header, templates):
    """A Source for each type; `templates` are the kernels' names with their constants, but for {T}."""
    return {dtype: Source(header, tuple(t.format(T=name) for t in templates)) for dtype, name in TYPES.items()}


def arguments(problem, input, weight, bias, out):
    """Tensors, Geometry, Strides."""
    g = problem
    sizes = (g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, *g.stride, *g.padding, *g.dilation, g.groups)
    strides = (*input.stride(), *weight.stride(), 0 if bias is None else bias.stride(0), *out.stride())
    return input, weight, bias, out, sizes, strides
