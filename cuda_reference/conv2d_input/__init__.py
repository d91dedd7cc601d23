"""conv2d_input in CUDA C++: a kernel flips the filters, then conv2d's kernels compute the result."""

from tritonkernels.conv2d_input import CONV2D_INPUT
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY
from .parts.flipped import flip


def conv2d_input(
    input_size,
    weight,
    grad_output,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    *,
    precision=None,
    out=None,
    design=None,
    config=None,
):
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
        precision=precision,
        out=out,
    )


OPERATOR = Operator(LIBRARY, CONV2D_INPUT, arrange=flip)
