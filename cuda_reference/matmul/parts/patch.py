"""The launch of a kernel whose blocks take a patch of an operand each (patch.cuh)."""

from ...launch import CudaLaunch, ceil_div

PATCH, THREADS = 64, 256


def by_patches(source, kernel, batch, span, k, arguments):
    """The launches, one or none, of a kernel over (batch, span, K)."""
    blocks = batch * ceil_div(span, PATCH) * ceil_div(k, PATCH)
    return [CudaLaunch(source, kernel, (blocks,), (THREADS, 1, 1), arguments)] if blocks else []
