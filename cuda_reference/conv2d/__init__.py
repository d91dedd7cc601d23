"""conv2d in CUDA C++."""

from tritonkernels.conv2d import prepare
from tritonkernels.conv2d.autograd import call
from tritonkernels.conv2d.parts.regime import expected as expected

from ..launch import LIBRARY
from .parts.choice import prefer as prefer

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
    return differentiable(
        LIBRARY,
        CONV2D,
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


def prefer(problem, target):
    """As the model has it; but `depthwise_channels` only where its lanes load several channels at once."""
    names = regime.prefer(problem, target)
    return names if problem.k % together(problem.dtype) == 0 else tuple(n for n in names if n != "depthwise_channels")


LIBRARY.serve(CONV2D, prefer=prefer, expected=regime.expected)
