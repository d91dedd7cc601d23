"""The launch that fills the gradient with zeros, or with a bias."""

from tritonkernels.operations.conv2d_input.as_conv2d import is_dense

from ...conv2d.parts.operands import sources
from ...launch import CudaLaunch, ceil_div

THREADS, EACH = 256, 16
SOURCES = {
    dense: sources("conv2d_input/parts/cleared.cuh", [f"conv2d_input::cleared<{{T}}, {THREADS}, {EACH}, {str(dense).lower()}>"])
    for dense in (False, True)
}


def clear(problem, bias, out):
    source, blocks = SOURCES[bias is None and is_dense(out)][problem.dtype], ceil_div(out.numel(), THREADS * EACH)
    arguments = bias, 0 if bias is None else bias.stride(0), out, out.numel(), *out.shape[1:], out.stride()
    return CudaLaunch(source, source.expressions[0], (blocks,), (THREADS, 1, 1), arguments)
