"""conv2d_input in CUDA C++: conv2d's kernels, of filters that they read in place or that a kernel flips before."""

from torch import Tensor

from tritonkernels.annotations import Config, Conv2dPrecision, Padding, Pair, Size
from tritonkernels.conv2d_input import CONV2D_INPUT
from tritonkernels.design import Design
from tritonkernels.operations.conv2d_input.as_conv2d import Arrange
from tritonkernels.torch_ops import Operator

from ..conv2d.parts.pixel_boxes import are_pixels
from ..conv2d_weight.parts.channels_last import in_chunks
from ..launch import LIBRARY
from .parts.cleared import clear
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


def pack(images, filters, fit):
    return in_chunks((images, are_pixels), (filters, lambda *_: fit))


OPERATOR = Operator(LIBRARY, CONV2D_INPUT, arrange=Arrange(flip, pack, clear))
