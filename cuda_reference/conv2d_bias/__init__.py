"""conv2d_bias in CUDA C++."""

from tritonkernels.conv2d_bias import CONV2D_BIAS
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def conv2d_bias(grad_output, *, out=None, design=None, config=None):
    """tritonkernels.conv2d_bias, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(design, config, grad_output=grad_output, out=out)


OPERATOR = Operator(LIBRARY, CONV2D_BIAS)
