"""FP32 GEMM in CUDA C++."""

from tritonkernels.gemm import GEMM
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def gemm(a, b, c=None, *, alpha=1.0, beta=None, out=None, design=None, config=None):
    """tritonkernels.gemm, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(design, config, a=a, b=b, c=c, alpha=alpha, beta=beta, out=out)


OPERATOR = Operator(LIBRARY, GEMM)
