"""conv2d_weight in CUDA C++."""

from tritonkernels.conv2d_weight import CONV2D_WEIGHT
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def conv2d_weight(
    input,
    weight_size,
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


OPERATOR = Operator(LIBRARY, CONV2D_WEIGHT)
