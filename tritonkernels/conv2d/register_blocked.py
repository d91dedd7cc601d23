"""conv2d, register_blocked: `direct` with four neighbouring outputs a lane, whose inputs slide through registers.

A lane's four outputs, four sums per output channel, share a window of four inputs. From one tap of a row to the next the window
slides by one: one load instead of four, and a filter tap serves four times as many outputs. That needs taps as far apart as
outputs (dilation and stride along W are equal, as in any dense filter); otherwise a window is four loads. The taps of a row are
unrolled, so that their offsets are part of the instructions. The four results are joined before they are written, so that
a store is 128 bits where rows allow.

Mirrors cuda_reference/conv2d/register_blocked.cuh.
"""

from ..config import config_of
from ..design import Design
from ..integers import next_power_of_2
from ..language.convolution import Geometry, operands
from ..language.dot import widened
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Filters, Images, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.conv2d.shapes import MOST_TAPS
from .parts.tile import bias_or_zero, channels_of, count_tiles, finished, place_of_program, work_of_tiles
from .parts.window import load_window, multiplied


@triton.jit
def _register_blocked_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, residual: Images, g: Geometry,
    BLOCK_K: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_Q: tl.constexpr,  # in fours
    SLIDES: tl.constexpr,  # taps are as far apart as outputs
    ACTIVATION: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """input (N, C, H, W), weight (K, C / groups, R, S), bias (K,) or None, out (N, K, P, Q), residual as out or None. WIDE:
    offsets need 64 bits."""
    wait_for_earlier_kernels()
    image, group, block_k, tile_p, tile_q = place_of_program(g, BLOCK_K, BLOCK_P, BLOCK_Q, WIDE)
    RUNS: tl.constexpr = BLOCK_Q // 4
    run = tl.arange(0, BLOCK_P * RUNS)  # of four outputs, the tile row by row
    p = tile_p * BLOCK_P + run // RUNS
    w = (tile_q * BLOCK_Q + run % RUNS * 4) * g.step_w - g.padding_w  # of the first output's first tap
    if WIDE:
        p = p.to(tl.int64)
        w = w.to(tl.int64)
    k, k_inside = channels_of(block_k, group, g, BLOCK_K)
    plane_ptr = input.ptr + image * input.n + group * g.c_per_group * input.c
    SUMS: tl.constexpr = tl.float64 if out.ptr.dtype.element_ty == tl.float64 else tl.float32
    first = tl.zeros((BLOCK_K, BLOCK_P * RUNS), SUMS) + bias_or_zero(bias, k, k_inside, SUMS)[:, None]
    acc = (first, first, first, first)
    filter_ptrs = weight.ptr + k * weight.k
    for _ in range(g.c_per_group):
        tap_row_ptrs = filter_ptrs  # pointers advance by strides: a tap's index times its stride could exceed 32 bits
        for r in range(g.R):
            h = p * g.step_h + (r * g.dilation_h - g.padding_h)
            row_ptrs = plane_ptr + h * input.h
            inside = (h >= 0) & (h < g.H)
            tap_ptrs = tap_row_ptrs
            if SLIDES:
                window = load_window(row_ptrs, w, g.step_w, 3, input.w, inside, g.W)
            for s in tl.static_range(g.S):
                at = w + s * g.dilation_w
                if not SLIDES:
                    window = load_window(row_ptrs, at, g.step_w, 3, input.w, inside, g.W)
                window += load_window(row_ptrs, at + 3 * g.step_w, 0, 1, input.w, inside, g.W)
                tap = widened(tl.load(tap_ptrs, mask=k_inside, other=0), SUMS)[:, None]
                acc = multiplied(acc, window, tap, SUMS)
                window = window[1:]
                tap_ptrs += weight.s
            tap_row_ptrs += weight.r
        plane_ptr += input.c
        filter_ptrs += weight.c

    side_by_side = tl.join(tl.join(acc[0], acc[2]), tl.join(acc[1], acc[3]))  # (..., 2, 2): 0 1, 2 3
    acc = tl.reshape(side_by_side, (BLOCK_K, BLOCK_P, BLOCK_Q))
    p = span(tile_p * BLOCK_P, BLOCK_P, WIDE)
    q = span(tile_q * BLOCK_Q, BLOCK_Q, WIDE)
    inside = k_inside[:, None, None] & (p < g.P)[None, :, None] & (q < g.Q)[None, None, :]
    plane_ptrs = out.ptr + image * out.n + k[:, None, None] * out.c
    out_ptrs = plane_ptrs + p[None, :, None] * out.h + q[None, None, :] * out.w
    place = image, k[:, None, None], p[None, :, None], q[None, None, :]
    sums = finished(acc, residual, *place, inside, ACTIVATION, out.ptr.dtype.element_ty)
    tl.store(out_ptrs, sums, mask=inside)


def refuses(problem, target):
    return f"it unrolls the taps of a row: up to {MOST_TAPS}, not {problem.s}" if problem.s > MOST_TAPS else None


def configs(problem, target):
    """BLOCK_K just covers the output channels of a group. A run of four outputs a thread, two where there are few channels:
    more would spill."""
    most = 16 if problem.stride[1] == problem.dilation[1] else 8  # where inputs do not slide, their loads take the registers
    channels = next_power_of_2(min(most, max(1, problem.k // problem.groups)))
    if not target.is_gpu:
        block_q = min(512, next_power_of_2(max(4, problem.q)))
        block_p = min(2**17 // channels // block_q, next_power_of_2(max(1, problem.p)))
        yield config_of({"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q})
    tiles = ((8, 128, 4), (8, 64, 4), (16, 32, 4), (4, 64, 2), (2, 64, 1))
    for block_p, block_q, num_warps in tiles:
        if block_p * block_q <= (8 if channels <= 4 else 4) * target.warp_size * num_warps:
            tile = {"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q}
            yield config_of(tile, num_warps=num_warps, num_stages=1)


def launches(problem, config, input, weight, bias, out, residual=None):
    grid, slides = (count_tiles(problem, config.kwargs),), problem.stride[1] == problem.dilation[1]
    structs = *operands(input, weight, bias, out), Images.of(residual), Geometry.of(problem, "S")
    switches = {"SLIDES": slides, "ACTIVATION": problem.activation, "WIDE": problem.wide}
    yield TritonLaunch(_register_blocked_kernel, grid, config, *structs, **switches)


def work(problem, config, target):
    """The loads of a row of taps are in flight together."""
    return work_of_tiles(problem, config, target, problem.c // problem.groups * problem.r)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
