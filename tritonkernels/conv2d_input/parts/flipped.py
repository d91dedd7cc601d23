"""The filters of the gradient: input and output channels of each group swapped, taps from the last to the first.

A copy of a few megabytes at most, for designs that do not read the filters where they are. Channels that lie inside do so on
both sides, but are others: a tile of both kinds lets loads and stores be of whole sectors, as in any transposition.

Mirrors cuda_reference/conv2d_input/parts/flipped.cuh.
"""

from ...integers import ceil_div
from ...language.convolution import Geometry
from ...language.overlap import wait_for_earlier_kernels
from ...language.position_sums import element
from ...language.structs import Filters
from ...language.tiles import block_of
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.conv2d_input.as_conv2d import FLIPPED


@triton.jit
def _flipped_kernel(
    weight: Filters, filters: Filters, g: Geometry, length, BLOCK_C: tl.constexpr, BLOCK: tl.constexpr,
    CHANNELS_INSIDE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """weight (K, C / groups, R, S), filters (C, K / groups, R, S), of `length` elements for a c. CHANNELS_INSIDE: in the order
    (r, s, k). WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    blocks = tl.cdiv(length, BLOCK)
    c = block_of(tl.program_id(0) // blocks, BLOCK_C, WIDE)[:, None]
    index = block_of(tl.program_id(0) % blocks, BLOCK, WIDE)[None, :]
    inside = (c < g.C) & (index < length)
    if CHANNELS_INSIDE:
        _, r, s, k = element(index, g.R, g.S, g.k_per_group)
    else:
        _, k, r, s = element(index, g.k_per_group, g.R, g.S)
    from_k = c // g.c_per_group * g.k_per_group + k
    from_tap = (g.R - 1 - r) * weight.r + (g.S - 1 - s) * weight.s
    tap = tl.load(weight.ptr + from_k * weight.k + c % g.c_per_group * weight.c + from_tap, mask=inside, other=0)
    tl.store(filters.ptr + c * filters.k + k * filters.c + r * filters.r + s * filters.s, tap, mask=inside)


SQUARE = triton.Config({"BLOCK_C": 32, "BLOCK": 32}, num_warps=4, num_stages=1)
LINES = triton.Config({"BLOCK_C": 1, "BLOCK": FLIPPED}, num_warps=4, num_stages=1)
INTERPRETED = triton.Config({"BLOCK_C": 16, "BLOCK": 2**10})  # which pays by the operation


def flip(problem, weight, filters):
    inside = filters.stride(1) == 1
    config = INTERPRETED if weight.device.type == "cpu" else SQUARE if inside else LINES
    length = filters[0].numel()
    blocks = ceil_div(problem.c, config.kwargs["BLOCK_C"]) * ceil_div(length, config.kwargs["BLOCK"])
    given = Filters.of(weight), Filters.of(filters), Geometry.of(problem), length
    return TritonLaunch(_flipped_kernel, (blocks,), config, *given, CHANNELS_INSIDE=inside, WIDE=problem.wide)
