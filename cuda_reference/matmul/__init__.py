"""Matrix product in CUDA C++, on tensor cores if they support the precision."""

import torch
from torch import Tensor

from tritonkernels.annotations import Accumulate, Config, MatmulActivation, MatmulPrecision, SplitPrecision
from tritonkernels.design import Design
from tritonkernels.matmul import MATMUL
from tritonkernels.operations.matmul.gated import interleave as interleave
from tritonkernels.operations.matmul.split import Split, make, unpacked
from tritonkernels.torch_ops import Operator

from ..launch import LIBRARY
from .parts.split import splitting


def matmul(
    a: Tensor,
    b: Tensor | Split,
    *,
    precision: MatmulPrecision | None = None,
    out_dtype: torch.dtype | None = None,
    accumulate: Accumulate | None = None,
    alpha: float = 1.0,
    beta: float | None = None,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    activation: MatmulActivation | None = None,
    scale_a: Tensor | None = None,
    scale_b: Tensor | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """tritonkernels.matmul, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    b, precision, planes = unpacked(b, precision)
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
        **planes,
        out=out,
    )


def split(b: Tensor, *, precision: SplitPrecision) -> Split:
    """tritonkernels.split, computed by CUDA kernels: the same planes, bit by bit."""
    return make(LIBRARY, b, precision, splitting)


OPERATOR = Operator(LIBRARY, MATMUL)
