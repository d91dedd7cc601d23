"""GEMV in CUDA C++. A design is <design>.cuh, the kernel, and <design>.py, its configs and launches."""

from tritonkernels.gemv import prepare
from tritonkernels.gemv.parts.regime import expected as expected
from tritonkernels.gemv.parts.regime import prefer as prefer

from ..launch import LIBRARY

DESIGNS = (
    "naive",
    "staged_x",
    "warp_per_row",
    "vectorized",
    "rows_per_warp",
    "block_per_row",
    "split_n",
    "transposed",
)


def gemv(a, x, y=None, *, alpha=1.0, beta=None, scale=None, out=None, design=None, config=None):
    """tritonkernels.gemv, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.call(prepare, **locals())
