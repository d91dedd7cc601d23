"""conv2d_bias in CUDA C++."""

from torch import Tensor

from tritonkernels.annotations import Config
from tritonkernels.conv2d_bias import CONV2D_BIAS
from tritonkernels.design import Design
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def conv2d_bias(
    grad_output: Tensor,
    *,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """tritonkernels.conv2d_bias, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(design, config, grad_output=grad_output, out=out)


OPERATOR = Operator(LIBRARY, CONV2D_BIAS)
