"""FP32 GEMM in CUDA C++."""

from tritonkernels.analysis.waves import waves
from tritonkernels.gemm import GEMM

from ..launch import LIBRARY, ceil_div


def gemm(a, b, c=None, *, alpha=1.0, beta=None, out=None, design=None, config=None):
    """tritonkernels.gemm, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.call(GEMM, design, config, a=a, b=b, c=c, alpha=alpha, beta=beta, out=out)


def prefer(problem, target):
    """The design for a problem, by its waves of 128 x 128 tiles. Few tiles or a poor last wave: split-K if K is long. Less than
    a wave: small tiles. A poor last wave: stream-K. Else the largest tile. Fitted to perf/results/h200/ladder.json.
    """
    if not target.is_gpu:
        return "tiled"
    tiles = ceil_div(problem.m, 128) * ceil_div(problem.n, 128)
    efficiency = waves(tiles, target.sms, 1).efficiency
    poor = 4 * tiles <= target.sms or (tiles > target.sms and efficiency < 0.95)
    if poor and problem.k >= 1024:
        return "split_k"
    if tiles < target.sms:
        return "double_buffered"
    if efficiency < 0.85:
        return "stream_k"
    return "async_copy" if target.arch >= 80 else "rasterized"


LIBRARY.serve(GEMM, prefer=prefer)
