"""conv2d in CUDA C++."""

from tritonkernels.conv2d import CONV2D
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def conv2d(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, precision=None, out=None, design=None, config=None
):
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
        out=out,
    )


OPERATOR = Operator(LIBRARY, CONV2D)
