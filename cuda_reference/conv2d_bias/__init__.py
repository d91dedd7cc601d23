"""conv2d_bias in CUDA C++."""

from tritonkernels.conv2d.autograd import call_bias
from tritonkernels.conv2d_bias import prepare

from ..launch import LIBRARY

DESIGNS = ("channel_sums",)


def conv2d_bias(grad_output, *, out=None, design=None, config=None):
    """tritonkernels.conv2d_bias, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return call_bias(LIBRARY, prepare, **locals())
