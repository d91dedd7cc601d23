"""The gradient filled with zeros, or with a bias, where some of its phases are reached by no tap.

Mirrors cuda_reference/conv2d_input/parts/cleared.cuh.
"""

from ...integers import ceil_div
from ...language.overlap import wait_for_earlier_kernels
from ...language.position_sums import element
from ...language.structs import Images, Vector
from ...language.tiles import block_of
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.conv2d_input.as_conv2d import is_dense


@triton.jit
def _cleared_kernel(bias: Vector, out: Images, total, C, H, W, DENSE: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """out (N, C, H, W) of `total` elements. DENSE: they follow each other in some order, and there is no bias."""
    wait_for_earlier_kernels()
    offsets = block_of(tl.program_id(0), BLOCK, WIDE)
    inside = offsets < total
    values = tl.zeros((BLOCK,), out.ptr.dtype.element_ty)
    if not DENSE:
        n, c, h, w = element(offsets, C, H, W)
        offsets = n * out.n + c * out.c + h * out.h + w * out.w
        if bias is not None:
            values = tl.load(bias.ptr + c * bias.step, mask=inside)
    tl.store(out.ptr + offsets, values, mask=inside)


CONFIG = triton.Config({"BLOCK": 4096}, num_warps=8, num_stages=1)


def clear(problem, bias, out):
    grid, dense = (ceil_div(out.numel(), CONFIG.kwargs["BLOCK"]),), bias is None and is_dense(out)
    arguments = Vector.of(bias), Images.of(out), out.numel(), *out.shape[1:]
    return TritonLaunch(_cleared_kernel, grid, CONFIG, *arguments, DENSE=dense, WIDE=problem.wide)
