"""conv2d_weight in CUDA C++."""

from torch import Tensor

from tritonkernels.annotations import Config, Conv2dPrecision, Padding, Pair, Size
from tritonkernels.conv2d_weight import CONV2D_WEIGHT
from tritonkernels.design import Design
from tritonkernels.operations.conv2d.as_matmul import Arrange
from tritonkernels.torch_ops import Operator

from ..conv2d.parts.unfolded import unfold
from ..launch import LIBRARY


def conv2d_weight(
    input: Tensor,
    weight_size: Size,
    grad_output: Tensor,
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    *,
    precision: Conv2dPrecision | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """tritonkernels.conv2d_weight, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(
        design,
        config,
        input=input,
        weight_size=weight_size,
        grad_output=grad_output,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        precision=precision,
        out=out,
    )


OPERATOR = Operator(LIBRARY, CONV2D_WEIGHT, arrange=Arrange(unfold))
