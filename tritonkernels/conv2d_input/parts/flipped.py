"""The filters of the gradient: input and output channels of each group swapped, taps from the last to the first.

A copy of a few kilobytes. Negative strides could express the flip, but not the swap with groups, and the following convolution
is faster with contiguous filters.

Mirrors cuda_reference/conv2d_input/parts/flipped.cuh.
"""

from ...integers import ceil_div
from ...language.convolution import Geometry
from ...language.overlap import wait_for_earlier_kernels
from ...language.position_sums import element
from ...language.structs import Filters
from ...language.tiles import span
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.conv2d_input.as_conv2d import FLIPPED


@triton.jit
def _flipped_kernel(weight: Filters, filters: Filters, g: Geometry, total, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """weight (K, C / groups, R, S), filters (C, K / groups, R, S) of `total` elements. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    c, k, r, s = element(index, g.k_per_group, g.R, g.S)
    from_k = c // g.c_per_group * g.k_per_group + k
    from_ptrs = weight.ptr + from_k * weight.k + c % g.c_per_group * weight.c
    tap = tl.load(from_ptrs + (g.R - 1 - r) * weight.r + (g.S - 1 - s) * weight.s, mask=index < total, other=0)
    tl.store(filters.ptr + c * filters.k + k * filters.c + r * filters.r + s * filters.s, tap, mask=index < total)


CONFIG = triton.Config({"BLOCK": FLIPPED}, num_warps=4, num_stages=1)
INTERPRETED = triton.Config({"BLOCK": 2**14})  # which pays by the operation


def flip(problem, weight, filters):
    config = CONFIG if weight.device.type != "cpu" else INTERPRETED
    grid = (ceil_div(filters.numel(), config.kwargs["BLOCK"]),)
    given = Filters.of(weight), Filters.of(filters), Geometry.of(problem), filters.numel()
    return TritonLaunch(_flipped_kernel, grid, config, *given, WIDE=problem.wide)
