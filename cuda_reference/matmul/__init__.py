"""Matrix product in CUDA C++, on tensor cores where they have the precision."""

from tritonkernels.matmul import MATMUL
from tritonkernels.matmul.schemes import SCHEMES

from ..launch import LIBRARY
from . import cuda_cores, mma_async, planes, wgmma_tma, wmma


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


DESIGNS = (
    cuda_cores.DESIGN,
    wmma.a_warp_per_tile(),
    wmma.a_block_per_tile(),
    mma_async.DESIGN,
    planes.DESIGN,
    wgmma_tma.DESIGN,
)


def prefer(problem, target):
    """planes for what it alone takes; on Hopper wgmma_tma where tiles of 128 x 64 keep half of the SMs busy, else mma_async.

    After records of an H200 (square.json): wgmma_tma takes 1.05 of mma_async's time at 512^3, 0.62 at 4096^3.
    """
    if problem.precision in SCHEMES:
        return planes.DESIGN.name
    tiles = problem.batch * -(-problem.m // 128) * -(-problem.n // 64)
    fills = min(problem.m, problem.n) >= 64 and 2 * tiles >= target.sms
    on_hopper = problem.precision in wgmma_tma.PRECISIONS and target.arch == 90
    return wgmma_tma.DESIGN.name if on_hopper and fills else mma_async.DESIGN.name


LIBRARY.serve(MATMUL, prefer=prefer)
