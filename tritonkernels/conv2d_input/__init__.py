"""The gradient of conv2d with respect to its input, by the designs of conv2d: a convolution with the flipped filter."""

from torch import Tensor

from ..annotations import Config, Conv2dPrecision, Padding, Pair, Size
from ..design import Design
from ..launch import LIBRARY
from ..operation import Operation
from ..operations.conv2d.rules import INPUT_RULES
from ..operations.conv2d_input.as_conv2d import TO_CONV2D, Arrange
from ..operations.conv2d_input.prepare import prepare
from ..torch_ops import Operator


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
    """The gradient of conv2d(input, weight, ...) with respect to its input, as torch.nn.grad.conv2d_input.

    input_size   of the input, (N, C, H, W) or (C, H, W): a tuple, a list or a torch.Size
    weight       (K, C / groups, R, S), any strides: float32, float16, bfloat16, all three with sums in fp32, or float64
    grad_output  (N, K, P, Q) or (K, P, Q) of weight's dtype, any strides (expanded ones too): the gradient of the result
    stride, padding, dilation, groups, precision  the convolution's, as conv2d takes them
    bias         (C,) of weight's dtype, which is added to the result as in a transposed convolution; or None
    out          of input_size and weight's dtype to write into; must not overlap an operand. Default: a new tensor, in
                 channels_last if weight or grad_output is
    design       one of designs("conv2d_input"), which are conv2d's, or its name; default: chosen as conv2d's is
    config       one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Error, elementwise: (gamma(n + 4) + 2v + v^2) * (|grad_output| * |weight| + |bias|) plus the one rounding of the result, n
    the products of an element, u = 2^-24 for ieee, 2^-53 for float64, 2^-23 for tf32 and 16-bit types, v = 2^-11 for tf32, else
    0 (`numerics.error_bound`). grad_output is padded with zeros, also next to an infinite weight. Differentiable, as conv2d.
    Raises as `gemm` does, before anything is launched.
    """
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


def flip(problem, weight, filters):
    from .parts.flipped import flip  # a kernel, as are the next two

    return flip(problem, weight, filters)


def pack(images, filters, fit):
    from ..language.channels_last import are_in_chunks, in_chunks

    return in_chunks((images, are_in_chunks), (filters, lambda _: fit))


def clear(problem, bias, out):
    from .parts.cleared import clear

    return clear(problem, bias, out)


CONV2D_INPUT = Operation("conv2d_input", prepare, INPUT_RULES, reductions=(TO_CONV2D,))
OPERATOR = Operator(LIBRARY, CONV2D_INPUT, arrange=Arrange(flip, pack, clear))
