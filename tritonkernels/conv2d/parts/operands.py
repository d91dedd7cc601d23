"""What a convolution's kernels take: its operands' structs, and Geometry as in cuda_reference/conv2d/parts/common.cuh."""

from typing import Any, NamedTuple

import triton.language as tl

from ...language.structs import Filters, Images, Vector


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
        """That of a Conv2dProblem; the fields named are tl.constexpr, for loops that are unrolled."""
        g = problem
        axes = (*g.stride, *g.padding, *g.dilation)
        found = cls(g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, *axes, g.groups, g.c // g.groups, g.k // g.groups)
        return found._replace(**{name: tl.constexpr(getattr(found, name)) for name in constants})


def operands(input, weight, bias, out):
    """Each tensor has its own strides: NCHW, channels_last and CHWN are three sets of them."""
    return Images.of(input), Filters.of(weight), Vector.of(bias), Images.of(out)


def arguments(problem, input, weight, bias, out):
    """Every tensor comes with its own strides: NCHW, channels_last and CHWN are three sets of them."""
    return {
        "input_ptr": input,
        "weight_ptr": weight,
        "bias_ptr": bias,
        "out_ptr": out,
        "N": problem.n,
        "H": problem.h,
        "W": problem.w,
        "P": problem.p,
        "Q": problem.q,
        "C_PER_GROUP": problem.c // problem.groups,
        "K_PER_GROUP": problem.k // problem.groups,
        "GROUPS": problem.groups,
        "R": problem.r,
        "S": problem.s,
        **dict(zip(("STEP_H", "STEP_W"), problem.stride)),
        **dict(zip(("PADDING_H", "PADDING_W"), problem.padding)),
        **dict(zip(("DILATION_H", "DILATION_W"), problem.dilation)),
        **dict(zip(("stride_in", "stride_ic", "stride_ih", "stride_iw"), input.stride())),
        **dict(zip(("stride_wk", "stride_wc", "stride_wr", "stride_ws"), weight.stride())),
        "stride_bias": 0 if bias is None else bias.stride(0),
        **dict(zip(("stride_on", "stride_ok", "stride_op", "stride_oq"), out.stride())),
        "HAS_BIAS": bias is not None,
        "WIDE": problem.wide,
    }
