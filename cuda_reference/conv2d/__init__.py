"""conv2d in CUDA C++."""

from tritonkernels.conv2d import prepare
from tritonkernels.conv2d.autograd import call
from tritonkernels.conv2d.parts.regime import expected as expected
from tritonkernels.conv2d.parts.regime import prefer as prefer

from ..launch import LIBRARY

DESIGNS = (
    "naive",
    "depthwise",
    "depthwise_channels",
    "direct",
    "prefetched",
    "register_blocked",
    "grouped",
    "pointwise",
    "implicit_gemm",
    "winograd",
)


def conv2d(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, precision=None, out=None, design=None, config=None
):
    """tritonkernels.conv2d, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return call(LIBRARY, prepare, **locals())
