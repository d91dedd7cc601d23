"""Tensor-core matrix product in CUDA C++."""

from tritonkernels.matmul import prepare
from tritonkernels.matmul.schemes import SCHEMES

from ..launch import LIBRARY
from . import mma_async, planes, wgmma_tma, wmma


def matmul(
    a,
    b,
    *,
    precision=None,
    out_dtype=None,
    accumulate=None,
    alpha=1.0,
    beta=0.0,
    c=None,
    bias=None,
    activation=None,
    out=None,
    design=None,
    config=None,
):
    """tritonkernels.matmul, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    arguments = {
        "a": a,
        "b": b,
        "precision": precision,
        "out_dtype": out_dtype,
        "accumulate": accumulate,
        "alpha": alpha,
        "beta": beta,
        "c": c,
        "bias": bias,
        "activation": activation,
        "out": out,
    }
    return LIBRARY.call(prepare, arguments, design, config)


DESIGNS = (wmma.a_warp_per_tile(), wmma.a_block_per_tile(), mma_async.DESIGN, planes.DESIGN, wgmma_tma.DESIGN)


def prefer(problem, target):
    """mma_async where it can, planes for what it alone takes: wgmma_tma has not been timed yet."""
    return planes.DESIGN.name if problem.precision in SCHEMES else mma_async.DESIGN.name
