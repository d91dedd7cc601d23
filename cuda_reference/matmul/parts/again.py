"""The launch of again.cuh, which computes again what planes refuse."""

from tritonkernels.operations.matmul.schemes import AGAIN, SCHEMES

from ...launch import CudaLaunch, Source
from .arguments import arguments
from .space import tiles

THREADS = 256
_KERNEL = "matmul::again<float>"
_SOURCE = Source("matmul/parts/again.cuh", (_KERNEL,))


def again(problem, a, b, c, bias, out, a_ranges, b_ranges):
    """The launch, if the problem's precision has one."""
    if SCHEMES[problem.precision].again:
        ranges = a_ranges, b_ranges, (a_ranges.stride(0), b_ranges.stride(0))
        blocks = out.shape[0] * tiles(problem, AGAIN, AGAIN)
        yield CudaLaunch(_SOURCE, _KERNEL, (blocks,), (THREADS, 1, 1), (*arguments(problem, a, b, c, bias, out), *ranges))
