"""conv2d, grouped: a lane owns a vertical run of outputs of several output channels of one group.

Groups of 4 to 64 channels do too much arithmetic to be bound by bandwidth (18 to 288 FLOP per byte in fp32) and are too small
for the tiles of a matrix product. The limit is loads per multiply-add. Here each row of inputs is loaded once and multiplied by
up to R taps of KT output channels: 3 taps, 4 channels and a run of 7 outputs are 84 multiply-adds for 9 inputs and 3 loads of
taps.

In channels_last a load reads several input channels of a pixel, 16 bytes, and lanes lie along output channels: those of a group
read the same address and write contiguous memory. In NCHW lanes lie along W. A first kernel packs the filters as (c, r, s, k),
in the type of the sums: a lane loads the taps of its KT channels at once, which (K, C / groups, R, S) would gather.

Mirrors cuda_reference/conv2d/grouped.cuh.
"""

from typing import Any, NamedTuple

from ..design import Design
from ..integers import ceil_div
from ..language.convolution import Geometry
from ..language.dot import widened
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Images, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.conv2d.work import of_outputs, strip
from ..problem import needs_wide_offsets
from .parts.lanes import load_along, store_along
from .parts.packed_taps import Taps, lanes_of, packed, packing
from .parts.run_space import at_once, grouped_configs
from .parts.runs import count_runs, refuses, side_by_side
from .parts.sliding import add_products, column_of_taps, place_of_runs, split_last, zero_sums
from .parts.tile import bias_or_zero, finished


class How(NamedTuple):
    """Constants."""

    VECTOR: Any  # contiguous, aligned channels of the input that are loaded together: divides a group's
    OUT_VECTOR: Any  # of KT, that lie side by side and aligned
    WHOLE: Any  # KT divides a group's output channels
    CHANNELS_INSIDE: Any  # the result's channels are closer together than its pixels
    ACTIVATION: Any


@triton.jit
def _grouped_kernel(
    input: Images, taps: Taps, bias: Vector, out: Images, residual: Images, g: Geometry,
    RUN: tl.constexpr,  # outputs below each other
    BLOCK: tl.constexpr,  # runs
    LANES: tl.constexpr,  # along output channels, of KT each
    KT: tl.constexpr,
    how: How,
    WIDE: tl.constexpr,
):  # fmt: skip
    """input (N, C, H, W), taps of _filters_kernel, bias (K,) or None, out (N, K, P, Q), residual as out or None. WIDE: offsets
    need 64 bits."""
    wait_for_earlier_kernels()
    VECTOR: tl.constexpr = how.VECTOR
    CHANNELS_INSIDE: tl.constexpr = how.CHANNELS_INSIDE
    FIRST: tl.constexpr = None if CHANNELS_INSIDE or how.OUT_VECTOR > 1 else True
    # program -> (runs, lanes), the last fastest: programs that read the same inputs are neighbours
    blocks = tl.cdiv(g.groups * taps.lanes, LANES)
    block = tl.program_id(0) // blocks
    block_k = tl.program_id(0) % blocks
    image, p, q = place_of_runs(block, RUN, BLOCK, g, WIDE)
    q, p, image = q[:, None, None], p[:, None, None], image[:, None, None]
    lane = span(block_k * LANES, LANES, WIDE)
    group = (lane // taps.lanes)[None, :, None]
    within = (lane % taps.lanes * KT)[None, :, None] + tl.arange(0, KT)[None, None, :]  # its group
    k = group * g.k_per_group + within
    valid = (image < g.N) & (group < g.groups)

    SUMS: tl.constexpr = taps.ptr.dtype.element_ty
    acc = zero_sums((BLOCK, LANES, KT), RUN, SUMS)
    h0 = p * g.step_h - g.padding_h
    # where lanes lie along channels, each loads its own taps (the same for all runs), so that they have the results' layout
    COPIES: tl.constexpr = BLOCK if CHANNELS_INSIDE else 1
    tap_offsets = tl.broadcast_to(lane[None, :, None] * KT + tl.arange(0, KT)[None, None, :], (COPIES, LANES, KT))
    row = taps.row
    if WIDE:
        row = row.to(tl.int64)
    corner = image * input.n + group * g.c_per_group * input.c + h0 * input.h
    for c in range(0, g.c_per_group, VECTOR):
        channel_offsets = corner + span(c, VECTOR, WIDE)[None, None, :] * input.c
        for s in range(g.S):
            w = q * g.step_w + (s * g.dilation_w - g.padding_w)
            in_column = valid & (w >= 0) & (w < g.W)
            columns = ()
            for j in tl.static_range(VECTOR):
                tap_ptrs = taps.ptr + (tap_offsets + ((c + j) * g.R * g.S + s) * row)
                columns += (column_of_taps(tap_ptrs, g.S * row, None, g.R, SUMS),)
            offsets = channel_offsets + w * input.w
            for at in tl.static_range((RUN - 1) * g.step_h + (g.R - 1) * g.dilation_h + 1):
                inside = in_column & (h0 + at >= 0) & (h0 + at < g.H)
                if CHANNELS_INSIDE or VECTOR > 1:  # vectors that the compiler cannot prove
                    offsets = tl.multiple_of(tl.max_contiguous(offsets, (1, 1, VECTOR)), (1, 1, VECTOR))
                    x = tl.load(input.ptr + offsets, mask=inside, other=0)
                else:
                    x = load_along(True, input.ptr, offsets, inside)
                x = split_last(widened(x, SUMS), VECTOR)
                for j in tl.static_range(VECTOR):
                    acc = add_products(acc, x[j], columns[j], at, g.step_h, g.dilation_h)
                offsets += input.h

    k_inside = group < g.groups
    if not how.WHOLE:
        k_inside = k_inside & (within < g.k_per_group)
    first = bias_or_zero(bias, k, k_inside, SUMS)
    offsets = image * out.n + q * out.w + p * out.h + k * out.c
    for i in tl.static_range(RUN):
        inside = (image < g.N) & k_inside & (p + i < g.P)
        place = image, k, p + i, q
        sums = finished(acc[i] + first, residual, *place, inside, how.ACTIVATION, out.ptr.dtype.element_ty, FIRST)
        if FIRST is None:
            offsets = tl.multiple_of(tl.max_contiguous(offsets, (1, 1, how.OUT_VECTOR)), (1, 1, how.OUT_VECTOR))
            tl.store(out.ptr + offsets, sums, mask=inside)
        else:
            store_along(True, out.ptr, offsets, sums, inside)
        offsets += out.h


def launches(problem, config, input, weight, bias, out, residual=None):
    tile, groups = config.kwargs, problem.groups
    channels, outputs = problem.c // groups, problem.k // groups
    taps, first = packed(problem, weight, tile["LANES"], tile["KT"])
    yield from first
    how = {
        "VECTOR": side_by_side(input, channels, at_once(problem, tile["KT"])),
        "OUT_VECTOR": side_by_side(out, outputs, tile["KT"]),
        "WHOLE": outputs % tile["KT"] == 0,
        "CHANNELS_INSIDE": problem.channels_last,
        "ACTIVATION": problem.activation,
    }
    how, wide = How(**{name: tl.constexpr(value) for name, value in how.items()}), problem.wide or needs_wide_offsets(taps.ptr)
    runs = count_runs(problem, tile["RUN"])
    grid = (ceil_div(runs, tile["BLOCK"]) * ceil_div(groups * taps.lanes, tile["LANES"]),)
    tensors = Images.of(input), taps, Vector.of(bias), Images.of(out), Images.of(residual)
    geometry = Geometry.of(problem, "R", "step_h", "dilation_h")
    yield TritonLaunch(_grouped_kernel, grid, config, *tensors, geometry, how=how, WIDE=wide)


def work(problem, config, target):
    """The loads of a column of inputs are in flight together; the packed taps are read from L2."""
    tile, threads, of_group = config.kwargs, target.warp_size * config.num_warps, problem.c // problem.groups
    run, block, channels = tile["RUN"], tile["BLOCK"], tile["LANES"] * tile["KT"]
    lanes, size = lanes_of(problem, tile["KT"]), max(4, problem.dtype.itemsize)
    steps = problem.s * of_group // (at_once(problem, tile["KT"]) if problem.channels_last else 1)
    blocks = ceil_div(count_runs(problem, run), block) * ceil_div(problem.groups * lanes, tile["LANES"])
    piece, outputs = strip(problem, run, block), run * block * channels
    given = blocks, threads, piece, channels, steps, outputs, problem.terms * channels * size
    main = of_outputs(problem, target, *given, registers=min(255, 40 + outputs // threads))
    return (*packing(problem, tile["LANES"], tile["KT"]), main)


DESIGN = Design(refuses=refuses, configs=grouped_configs, launches=launches, work=work)
