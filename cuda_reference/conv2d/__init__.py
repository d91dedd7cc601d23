"""conv2d in CUDA C++."""

from torch import Tensor

from tritonkernels.annotations import Activation, Config, Conv2dPrecision, Padding, Pair
from tritonkernels.conv2d import CONV2D
from tritonkernels.design import Design
from tritonkernels.operations.conv2d.as_matmul import Arrange
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY
from .parts.unfolded import unfold


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    *,
    precision: Conv2dPrecision | None = None,
    activation: Activation | None = None,
    residual: Tensor | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """tritonkernels.conv2d, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(
        design,
        config,
        input=input,
        weight=weight,
        bias=bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        precision=precision,
        activation=activation,
        residual=residual,
        out=out,
    )


OPERATOR = Operator(LIBRARY, CONV2D, arrange=Arrange(unfold))
