"""Matrix product in CUDA C++, on tensor cores if they support the precision."""

from tritonkernels.matmul import MATMUL
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY


def matmul(
    a,
    b,
    *,
    precision=None,
    out_dtype=None,
    accumulate=None,
    alpha=1.0,
    beta=None,
    c=None,
    bias=None,
    activation=None,
    scale_a=None,
    scale_b=None,
    out=None,
    design=None,
    config=None,
):
    """tritonkernels.matmul, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return OPERATOR(
        design,
        config,
        a=a,
        b=b,
        precision=precision,
        out_dtype=out_dtype,
        accumulate=accumulate,
        alpha=alpha,
        beta=beta,
        c=c,
        bias=bias,
        activation=activation,
        scale_a=scale_a,
        scale_b=scale_b,
        out=out,
    )


OPERATOR = Operator(LIBRARY, MATMUL)
