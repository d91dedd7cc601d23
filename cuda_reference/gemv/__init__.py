"""GEMV in CUDA C++."""

from torch import Tensor

from tritonkernels.annotations import Config
from tritonkernels.design import Design
from tritonkernels.gemv import GEMV
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def gemv(
    a: Tensor,
    x: Tensor,
    y: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float | None = None,
    scale: Tensor | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """tritonkernels.gemv, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(design, config, a=a, x=x, y=y, alpha=alpha, beta=beta, scale=scale, out=out)


OPERATOR = Operator(LIBRARY, GEMV)
