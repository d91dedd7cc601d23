"""conv2d_input in CUDA C++: conv2d's kernels, after one that flips the filters."""

from tritonkernels.conv2d import CONV2D
from tritonkernels.conv2d.parts.autograd import differentiable
from tritonkernels.conv2d_input import CONV2D_INPUT
from tritonkernels.conv2d_input.parts.phases import largest
from tritonkernels.conv2d_input.parts.reduction import reduced

from ..conv2d.parts.choice import prefer as prefer_of_conv2d
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
    return differentiable(
        LIBRARY,
        CONV2D_INPUT,
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


def prefer(problem, target):
    """conv2d's choice for the convolution that most of the work is."""
    return prefer_of_conv2d(largest(problem).problem, target)


def through(design):
    """The design of conv2d as one of its gradient."""
    return reduced(design, flip)


LIBRARY.serve(CONV2D_INPUT, prefer=prefer, of=CONV2D, through=through)
