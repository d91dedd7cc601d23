"""FP32 GEMM in CUDA C++."""

from torch import Tensor

from tritonkernels.annotations import Config
from tritonkernels.design import Design
from tritonkernels.gemm import GEMM
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """tritonkernels.gemm, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(design, config, a=a, b=b, c=c, alpha=alpha, beta=beta, out=out)


OPERATOR = Operator(LIBRARY, GEMM)
