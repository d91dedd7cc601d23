"""The structs of a convolution's kernels: operands, and Geometry as in cuda_reference/conv2d/parts/common.cuh."""

from typing import Any, NamedTuple

from .structs import Filters, Images, Vector
from .triton import tl


class Geometry(NamedTuple):
    """The last two are functions in CUDA; as fields Triton specialises them, so that a loop over one channel is none."""

    N: Any
    C: Any
    H: Any
    W: Any
    K: Any
    R: Any
    S: Any
    P: Any
    Q: Any
    step_h: Any
    step_w: Any
    padding_h: Any
    padding_w: Any
    dilation_h: Any
    dilation_w: Any
    groups: Any
    c_per_group: Any
    k_per_group: Any

    @classmethod
    def of(cls, problem, *constants):
        """The Geometry of a Conv2dProblem; the named fields are tl.constexpr, for unrolled loops."""
        g = problem
        axes = (*g.stride, *g.padding, *g.dilation)
        found = cls(g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, *axes, g.groups, g.c // g.groups, g.k // g.groups)
        return found._replace(**{name: tl.constexpr(getattr(found, name)) for name in constants})


def operands(input, weight, bias, out):
    """Each tensor has its own strides: NCHW, channels_last and CHWN are three sets of them."""
    return Images.of(input), Filters.of(weight), Vector.of(bias), Images.of(out)
