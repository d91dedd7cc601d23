"""conv2d_weight in CUDA C++."""

from tritonkernels.conv2d.autograd import call
from tritonkernels.conv2d_weight import prepare

from ..launch import LIBRARY

DESIGNS = ("naive", "implicit_gemm")


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
    return call(LIBRARY, prepare, **locals())
