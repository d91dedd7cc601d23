"""conv2d, depthwise: a lane owns four outputs of a column, below each other, of one output channel; nothing is shared.

With one input channel per group there is no sum over channels to block for: 2 R S operations an output, on 4 bytes in and 4
out, leave it to bandwidth. What is to be saved are loads: down a column of taps the four outputs share a window of four
inputs, which slides by one from tap to tap (where taps are as far apart as outputs are). Runs go down, so that neighbouring
lanes stay neighbours in memory: along W in NCHW, along the channels in channels_last, where a thread has four channels and
loads them at once. Columns of few taps are unrolled, so that all their loads are under way together.

Small filters, one for each channel, are better off where runs are unrolled with all the rows that they meet, strided ones too:
in channels_last with `depthwise_channels`, in NCHW with `grouped` where there is enough to do for its two launches.

It computes every convolution, but with more channels per group its filter taps, a load for 4 multiply-adds, hold it up.

Mirrors cuda_reference/conv2d/depthwise.cuh.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.structs import Filters, Images, Vector
from ..language.tiles import span
from ..launch import TritonLaunch
from .parts.operands import Geometry, operands
from .parts.tile import bias_or_zero
from .parts.window import load_window, multiplied

MOST_UNROLLED = 7  # taps of a column
MOST_LOADED = 3  # of those that load four inputs each


@triton.jit
def _depthwise_kernel(
    input: Images,
    weight: Filters,
    bias: Vector,
    out: Images,
    g: Geometry,
    BLOCK: tl.constexpr,  # runs of four outputs
    BLOCK_K: tl.constexpr,
    TAPS: tl.constexpr,  # of a column that are unrolled: divides R
    CHANNELS_INSIDE: tl.constexpr,
    SLIDES: tl.constexpr,  # taps are as far apart as outputs
    WIDE: tl.constexpr,
):
    """input (N, C, H, W), weight (K, C / groups, R, S), bias (K,) or None, out (N, K, P, Q). WIDE: offsets need 64 bits."""
    # program -> (channels, runs), or (runs, channels) where channels lie side by side, the last fastest
    rows = tl.cdiv(g.P, 4)
    program = tl.program_id(0)
    if CHANNELS_INSIDE:
        blocks = tl.cdiv(g.K, BLOCK_K)
        block_k = program % blocks
        block = program // blocks
    else:
        blocks = tl.num_programs(0) // tl.cdiv(g.K, BLOCK_K)
        block = program % blocks
        block_k = program // blocks
    if WIDE:
        block = block.to(tl.int64)
    index = span(block * BLOCK, BLOCK, WIDE)  # run -> (image, row, column)
    q = index % g.Q
    p = index // g.Q % rows * 4
    image = index // g.Q // rows
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


def runs_of(problem):
    """Columns of four outputs, or of what is left at the bottom of a plane."""
    return problem.n * triton.cdiv(problem.p, 4) * problem.q


def configs(problem, target):
    """Four channels a lane where they lie side by side, else one, of a run or two; the interpreter pays by the operation, so it
    gets all at once. Left to itself ptxas spills a few words to fit more warps on an SM than bandwidth asks for."""
    channels = triton.next_power_of_2(max(1, problem.k))
    if not target.is_gpu:
        block_k = min(64, channels)
        yield triton.Config(
            {"BLOCK": min(2**14 // block_k, triton.next_power_of_2(max(1, runs_of(problem)))), "BLOCK_K": block_k}
        )
    if problem.channels_last and channels > 1:
        block_k, a_lane = min(32, channels), 16 // max(4, problem.dtype.itemsize)
        for warps in (4, 8):
            block = target.warp_size * warps * a_lane // block_k
            yield triton.Config({"BLOCK": block, "BLOCK_K": block_k}, num_warps=warps, num_stages=1, maxnreg=128)
    for runs in (2, 1):
        warps = 128 // target.warp_size
        yield triton.Config({"BLOCK": 128 * runs, "BLOCK_K": 1}, num_warps=warps, num_stages=1, maxnreg=64 * runs)


def launches(problem, config, *tensors):
    tile, slides, (*_, out) = config.kwargs, problem.stride[0] == problem.dilation[0], tensors
    switches = {
        "TAPS": problem.r if problem.r <= (MOST_UNROLLED if slides else MOST_LOADED) else 1,
        "CHANNELS_INSIDE": out.stride(1) == 1 and problem.k > 1,
        "SLIDES": slides,
        "WIDE": problem.wide,
    }
    grid = (triton.cdiv(runs_of(problem), tile["BLOCK"]) * triton.cdiv(problem.k, tile["BLOCK_K"]),)
    yield TritonLaunch(_depthwise_kernel, grid, config, *operands(*tensors), Geometry.of(problem), **switches)


DESIGN = Design(
    name="depthwise",
    summary="a run of outputs of a column a thread, lanes along W, for one channel per group",
    mirrors="conv2d: naive, for one channel per group",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
