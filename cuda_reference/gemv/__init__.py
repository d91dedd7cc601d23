"""GEMV in CUDA C++."""

from tritonkernels.gemv import GEMV
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def gemv(a, x, y=None, *, alpha=1.0, beta=None, scale=None, out=None, design=None, config=None):
    """tritonkernels.gemv, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(design, config, a=a, x=x, y=y, alpha=alpha, beta=beta, scale=scale, out=out)


OPERATOR = Operator(LIBRARY, GEMV)
