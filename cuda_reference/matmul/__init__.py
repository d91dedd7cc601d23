"""Matrix product in CUDA C++, on tensor cores if they support the precision."""

from tritonkernels.matmul import MATMUL
from tritonkernels.matmul.parts.schemes import SCHEMES

from ..launch import LIBRARY
from .parts.arguments import ELEMENTS


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
    out=None,
    design=None,
    config=None,
):
    """tritonkernels.matmul, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.call(
        MATMUL,
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
        out=out,
    )


def prefer(problem, target):
    """gemv's designs if they apply, gemm's where they were faster on an H200, then the design of `_product`."""
    by_rows = (problem.a_layout, problem.b_layout) == ("row", "row")
    splits = problem.k >= 4 * max(problem.m, problem.n)  # `cuda_cores` has no split-K
    return ("gemv", *(("gemm",) if by_rows or splits else ()), _product(problem, target))


def _product(problem, target):
    """planes for its own precisions; on Hopper persistent if tiles of 128 x 64 fill half of the SMs; else pipelined.

    On an H200 (square.json), persistent takes 1.05 of pipelined's time at 512^3 and 0.62 at 4096^3.
    """
    if problem.precision in SCHEMES:
        return "planes"
    tiles = problem.batch * -(-problem.m // 128) * -(-problem.n // 64)
    fills = min(problem.m, problem.n) >= 64 and 2 * tiles >= target.sms
    on_hopper = problem.precision in ELEMENTS and target.arch == 90
    return "persistent" if on_hopper and fills else "pipelined"


LIBRARY.serve(MATMUL, prefer=prefer)
