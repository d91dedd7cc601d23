"""conv2d, depthwise: a lane owns a run of four outputs below each other, of one output channel; nothing is shared.

With one input channel per group there is no sum over channels to block for: 2 R S operations per output on 8 bytes of traffic
leave it bound by bandwidth. What can be saved is loads. Down a column of taps the four outputs share a window of four inputs,
which slides by one from tap to tap where taps are as far apart as outputs. Runs go down, so that neighbouring lanes stay
neighbours in memory: along W in NCHW, along channels in channels_last, four a thread. Short columns are unrolled, so that
all their loads are in flight together.

Other designs do better with one small filter per channel, by unrolling runs with all their rows, strided ones too:
`depthwise_channels` in channels_last, and `grouped` in NCHW where there is enough work for its two launches. Any convolution is
computed, but with more channels per group the filter taps limit it: one load for 4 multiply-adds.

Mirrors cuda_reference/conv2d/depthwise.cuh.
"""

import triton
import triton.language as tl

from ..design import Design
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.structs import Filters, Images, Vector
from ..language.tiles import span
from ..launch import TritonLaunch
from .parts.operands import Geometry, operands
from .parts.run_space import depthwise_configs
from .parts.runs import count_runs
from .parts.sliding import place_of_runs
from .parts.tile import bias_or_zero
from .parts.window import load_window, multiplied

MOST_UNROLLED = 7  # taps of a column
MOST_LOADED = 3  # of those that load four inputs each


@triton.jit
def _depthwise_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, g: Geometry,
    BLOCK: tl.constexpr,  # runs of four outputs
    BLOCK_K: tl.constexpr,
    TAPS: tl.constexpr,  # of a column that are unrolled: divides R
    CHANNELS_INSIDE: tl.constexpr,
    SLIDES: tl.constexpr,  # taps are as far apart as outputs
    WIDE: tl.constexpr,
):  # fmt: skip
    """input (N, C, H, W), weight (K, C / groups, R, S), bias (K,) or None, out (N, K, P, Q). WIDE: offsets need 64 bits."""
    # program -> (channels, runs), or (runs, channels) where channels lie side by side, the last fastest
    program = tl.program_id(0)
    if CHANNELS_INSIDE:
        blocks = tl.cdiv(g.K, BLOCK_K)
        block_k = program % blocks
        block = program // blocks
    else:
        blocks = tl.num_programs(0) // tl.cdiv(g.K, BLOCK_K)
        block = program % blocks
        block_k = program // blocks
    image, p, q = place_of_runs(block, 4, BLOCK, g, WIDE)
    k = span(block_k * BLOCK_K, BLOCK_K, WIDE)
    k_inside = k < g.K
    valid = (image < g.N)[:, None] & k_inside[None, :]

    SUMS: tl.constexpr = tl.float64 if out.ptr.dtype.element_ty == tl.float64 else tl.float32
    first = tl.zeros((BLOCK, BLOCK_K), SUMS) + bias_or_zero(bias, k, k_inside, SUMS)[None, :]
    acc = (first, first, first, first)
    plane_ptrs = input.ptr + (image * input.n)[:, None] + (k // g.k_per_group * g.c_per_group * input.c)[None, :]
    filter_ptrs = weight.ptr + k * weight.k
    h = (p * g.step_h - g.padding_h)[:, None]  # of the first output's first tap
    for _ in range(g.c_per_group):
        tap_column_ptrs = filter_ptrs  # pointers step by strides: a tap's index times its stride could leave 32 bits
        for s in range(g.S):
            w = (q * g.step_w + (s * g.dilation_w - g.padding_w))[:, None]
            inside = valid & (w >= 0) & (w < g.W)
            column_ptrs = plane_ptrs + w * input.w
            tap_ptrs = tap_column_ptrs
            if SLIDES:
                window = load_window(column_ptrs, h, g.step_h, 3, input.h, inside, g.H)
            for first_r in range(0, g.R, TAPS):
                for r in tl.static_range(TAPS):
                    at = h + (first_r + r) * g.dilation_h
                    if not SLIDES:
                        window = load_window(column_ptrs, at, g.step_h, 3, input.h, inside, g.H)
                    window += load_window(column_ptrs, at + 3 * g.step_h, 0, 1, input.h, inside, g.H)
                    tap = widened(tl.load(tap_ptrs, mask=k_inside, other=0), SUMS)[None, :]
                    acc = multiplied(acc, window, tap, SUMS)
                    window = window[1:]
                    tap_ptrs += weight.r
            tap_column_ptrs += weight.s
        plane_ptrs += input.c
        filter_ptrs += weight.c
    out_ptrs = out.ptr + (image * out.n + q * out.w)[:, None] + (k * out.c)[None, :]
    for i in tl.static_range(4):
        row = (p + i)[:, None]
        tl.store(out_ptrs + row * out.h, rounded(acc[i], out.ptr.dtype.element_ty), mask=valid & (row < g.P))


def launches(problem, config, *tensors):
    tile, slides, (*_, out) = config.kwargs, problem.stride[0] == problem.dilation[0], tensors
    switches = {
        "TAPS": problem.r if problem.r <= (MOST_UNROLLED if slides else MOST_LOADED) else 1,
        "CHANNELS_INSIDE": out.stride(1) == 1 and problem.k > 1,
        "SLIDES": slides,
        "WIDE": problem.wide,
    }
    grid = (triton.cdiv(count_runs(problem, 4), tile["BLOCK"]) * triton.cdiv(problem.k, tile["BLOCK_K"]),)
    yield TritonLaunch(_depthwise_kernel, grid, config, *operands(*tensors), Geometry.of(problem), **switches)


DESIGN = Design(configs=depthwise_configs, launches=launches)
