"""conv2d, depthwise: a lane owns a vertical run of four outputs of one output channel; nothing is shared.

With one input channel per group there is no sum over channels to block for: 2 R S operations per output on 8 bytes of traffic
leave it bound by bandwidth. What can be saved is loads: down a column the four outputs share a window of inputs that slides
from tap to tap (parts/window.py). Runs go down, so that neighbouring lanes stay neighbours in memory: along W in NCHW, along
channels in channels_last. Any convolution is computed; with more channels per group it is limited by loads of filter taps.
Mirrors cuda_reference/conv2d/depthwise.cuh.
"""

from ..design import Design
from ..integers import ceil_div
from ..language.convolution import Geometry, operands
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Filters, Images, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.conv2d.work import of_outputs, strip
from .parts.run_space import depthwise_configs, taps_unrolled
from .parts.runs import count_runs
from .parts.sliding import blocks_of_program, place_of_runs
from .parts.tile import bias_or_zero, finished
from .parts.window import multiply_column


@triton.jit
def _depthwise_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, residual: Images, g: Geometry, BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr, TAPS: tl.constexpr, CHANNELS_INSIDE: tl.constexpr, SLIDES: tl.constexpr, ACTIVATION: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """input (N, C, H, W), weight (K, C / groups, R, S), bias (K,) or None, out (N, K, P, Q), residual as out or None. WIDE:
    offsets need 64 bits."""
    wait_for_earlier_kernels()
    block, block_k = blocks_of_program(g, BLOCK_K, CHANNELS_INSIDE)
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
        tap_ptrs = filter_ptrs  # pointers advance by strides: a tap's index times its stride could exceed 32 bits
        for s in range(g.S):
            w = (q * g.step_w + (s * g.dilation_w - g.padding_w))[:, None]
            inside = valid & (w >= 0) & (w < g.W)
            acc = multiply_column(
                acc, plane_ptrs + w * input.w, h, inside, tap_ptrs, k_inside, input.h, weight.r, g, TAPS, SLIDES
            )
            tap_ptrs += weight.s
        plane_ptrs += input.c
        filter_ptrs += weight.c
    out_ptrs = out.ptr + (image * out.n + q * out.w)[:, None] + (k * out.c)[None, :]
    for i in tl.static_range(len(acc)):
        row = (p + i)[:, None]
        place = image[:, None], k[None, :], row, q[:, None]
        inside = valid & (row < g.P)
        sums = finished(acc[i], residual, *place, inside, ACTIVATION, out.ptr.dtype.element_ty)
        tl.store(out_ptrs + row * out.h, sums, mask=inside)


def launches(problem, config, input, weight, bias, out, residual=None):
    tile, slides = config.kwargs, problem.stride[0] == problem.dilation[0]
    grid = (ceil_div(count_runs(problem, 4), tile["BLOCK"]) * ceil_div(problem.k, tile["BLOCK_K"]),)
    switches = {
        "TAPS": taps_unrolled(problem, slides),
        "CHANNELS_INSIDE": out.stride(1) == 1 and problem.k > 1,
        "SLIDES": slides,
        "ACTIVATION": problem.activation,
    }
    arguments = *operands(input, weight, bias, out), Images.of(residual), Geometry.of(problem)
    yield TritonLaunch(_depthwise_kernel, grid, config, *arguments, **switches, WIDE=problem.wide)


def work(problem, config, target):
    """The loads of the taps that are unrolled are in flight together."""
    block, channels, threads = config.kwargs["BLOCK"], config.kwargs["BLOCK_K"], target.warp_size * config.num_warps
    blocks = ceil_div(count_runs(problem, 4), block) * ceil_div(problem.k, channels)
    rounds = problem.r // taps_unrolled(problem, problem.stride[0] == problem.dilation[0])
    steps, outputs = problem.c // problem.groups * problem.s * rounds, 4 * block * channels
    return (of_outputs(problem, target, blocks, threads, strip(problem, 4, block), channels, steps, outputs),)


DESIGN = Design(configs=depthwise_configs, launches=launches, work=work)
