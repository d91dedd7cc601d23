"""conv2d_input in CUDA C++: a kernel flips the filters, then conv2d's kernels compute the result."""

from torch import Tensor

from tritonkernels.annotations import Config, Conv2dPrecision, Padding, Pair, Size
from tritonkernels.conv2d_input import CONV2D_INPUT
from tritonkernels.design import Design
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY
from .parts.flipped import flip


def conv2d_input(
    input_size: Size,
    weight: Tensor,
    grad_output: Tensor,
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    *,
    bias: Tensor | None = None,
    precision: Conv2dPrecision | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """tritonkernels.conv2d_input, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(
        design,
        config,
        input_size=input_size,
        weight=weight,
        grad_output=grad_output,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
        precision=precision,
        out=out,
    )


OPERATOR = Operator(LIBRARY, CONV2D_INPUT, arrange=flip)
