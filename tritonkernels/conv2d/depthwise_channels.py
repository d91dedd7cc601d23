"""conv2d, depthwise_channels: unrolled runs of outputs of four channels a lane, for one filter per channel.

In channels_last, where lanes lie along channels, a tap costs a lane four distant loads, as many as its inputs do. So runs are
long, all their rows are unrolled, also with a stride, and the taps of a 3 x 3 filter stay in registers. Of a larger filter they
hold a column at a time: a column of 13 taps and a run of 8 outputs are 416 multiply-adds for 20 loads of inputs. A first kernel
can pack the filters, so that four channels' taps are one load of 16 bytes, too. In NCHW lanes lie along W, one channel a lane,
and a tap is one load for all of them: for filters whose columns are too long for `depthwise` to unroll.

Mirrors cuda_reference/conv2d/depthwise_channels.cuh.
"""

from typing import Any, NamedTuple

from ..design import Design
from ..integers import ceil_div
from ..language.convolution import Geometry
from ..language.dot import widened
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Filters, Images, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.conv2d.work import of_outputs, strip
from ..problem import needs_wide_offsets
from .parts.lanes import load_along, store_along
from .parts.packed_taps import packed, packing
from .parts.run_space import MOST_KEPT, channels_configs
from .parts.runs import count_runs, side_by_side, unrollable_depthwise
from .parts.sliding import add_products, column_of_taps, place_of_runs, zero_sums
from .parts.tile import bias_or_zero, finished


@triton.jit
def _slide(acc, taps, s, input, corner, h0, q, valid, g, VECTOR: tl.constexpr):
    """acc, the sums of a run in column q, and column s of the taps times its inputs. h0 is the row of the run's first input."""
    w = q * g.step_w + (s * g.dilation_w - g.padding_w)
    in_column = valid & (w >= 0) & (w < g.W)
    offsets = corner + w * input.w
    for at in tl.static_range((len(acc) - 1) * g.step_h + (g.R - 1) * g.dilation_h + 1):
        inside = in_column & ((h0 + at).to(tl.uint32) < g.H)  # rows above the image are huge numbers
        if VECTOR > 1:  # vectors that the compiler cannot prove
            offsets = tl.multiple_of(tl.max_contiguous(offsets, (1, VECTOR)), (1, VECTOR))
            x = tl.load(input.ptr + offsets, mask=inside, other=0)
        else:
            x = load_along(False, input.ptr, offsets, inside)
        acc = add_products(acc, widened(x, acc[0].dtype), taps, at, g.step_h, g.dilation_h)
        offsets += input.h
    return acc


class How(NamedTuple):
    """Constants. KEPT: all taps stay in registers, else a column of them at a time. PACKED: the weight is one of packed taps,
    padded to whole blocks. VECTOR channels lie side by side and aligned in input and result."""

    KEPT: Any
    PACKED: Any
    VECTOR: Any
    ACTIVATION: Any


@triton.jit
def _depthwise_channels_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, residual: Images, g: Geometry, RUN: tl.constexpr,
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, TURNS, how: How, WIDE: tl.constexpr,
):  # fmt: skip
    """TURNS blocks of BLOCK runs of RUN outputs. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    VECTOR: tl.constexpr = how.VECTOR
    FIRST: tl.constexpr = None if VECTOR > 1 else False
    # program -> (runs, channels), the last fastest
    blocks_k = tl.cdiv(g.K, BLOCK_K)
    program = tl.program_id(0)
    k = span(program % blocks_k * BLOCK_K, BLOCK_K, WIDE)[None, :]
    k_inside = k < g.K
    if VECTOR > 1:  # which divides K
        k_inside = tl.max_constancy(k_inside, (1, VECTOR))
    SUMS: tl.constexpr = tl.float64 if out.ptr.dtype.element_ty == tl.float64 else tl.float32
    first = bias_or_zero(bias, k, k_inside, SUMS)
    filter_ptrs = weight.ptr + k * weight.k
    columns = ()
    if how.KEPT:
        for _ in tl.static_range(g.S):
            columns += (column_of_taps(filter_ptrs, weight.r, k_inside, g.R, SUMS),)
            filter_ptrs += weight.s
    for turn in range(TURNS):
        block = program // blocks_k + turn * (tl.num_programs(0) // blocks_k)
        image, p, q = place_of_runs(block, RUN, BLOCK, g, WIDE)
        q, p, image = q[:, None], p[:, None], image[:, None]
        valid = (image < g.N) & k_inside
        h0 = p * g.step_h - g.padding_h
        corner = image * input.n + h0 * input.h + k * input.c
        acc = zero_sums((BLOCK, BLOCK_K), RUN, SUMS)
        if how.KEPT:
            for s in tl.static_range(g.S):
                acc = _slide(acc, columns[s], s, input, corner, h0, q, valid, g, VECTOR)
        else:
            column_ptrs = filter_ptrs
            for s in range(g.S):
                taps = column_of_taps(column_ptrs, weight.r, None if how.PACKED else k_inside, g.R, SUMS)
                acc = _slide(acc, taps, s, input, corner, h0, q, valid, g, VECTOR)
                column_ptrs += weight.s
        offsets = image * out.n + p * out.h + q * out.w + k * out.c
        for i in tl.static_range(RUN):
            inside = valid & (p + i < g.P)
            place = image, k, p + i, q
            sums = finished(acc[i] + first, residual, *place, inside, how.ACTIVATION, out.ptr.dtype.element_ty, FIRST)
            if VECTOR > 1:
                offsets = tl.multiple_of(tl.max_contiguous(offsets, (1, VECTOR)), (1, VECTOR))
                tl.store(out.ptr + offsets, sums, mask=inside)
            else:
                store_along(False, out.ptr, offsets, sums, inside)
            offsets += out.h


def refuses(problem, target):
    return None if unrollable_depthwise(problem) else "it supports one filter per channel, with columns that it can unroll"


def launches(problem, config, input, weight, bias, out, residual=None):
    tile = config.kwargs
    runs = count_runs(problem, tile["RUN"])
    grid = (ceil_div(problem.k, tile["BLOCK_K"]) * ceil_div(runs, tile["BLOCK"] * tile["TURNS"]),)
    kept, packs, wide, filters = problem.r * problem.s <= MOST_KEPT, tile.get("PACKED", False), problem.wide, Filters.of(weight)
    if packs:
        taps, first = packed(problem, weight, tile["BLOCK_K"], 1)
        yield from first
        filters, wide = Filters(taps.ptr, 1, 0, problem.s * taps.row, taps.row), wide or needs_wide_offsets(taps.ptr)
    vector = min(side_by_side(t, problem.k, min(4, tile["BLOCK_K"])) for t in (input, out))
    geometry = Geometry.of(problem, "R", "step_h", "dilation_h", *(["S"] if kept else []))
    tensors = Images.of(input), filters, Vector.of(bias), Images.of(out), Images.of(residual)
    how = How(*map(tl.constexpr, (kept, packs, vector, problem.activation)))
    yield TritonLaunch(_depthwise_channels_kernel, grid, config, *tensors, geometry, how=how, WIDE=wide)


def work(problem, config, target):
    """The loads of a column of inputs are in flight together."""
    tile, threads = config.kwargs, target.warp_size * config.num_warps
    run, turns, channels = tile["RUN"], tile["TURNS"], tile["BLOCK_K"]
    block = tile["BLOCK"] * turns
    blocks = ceil_div(problem.k, channels) * ceil_div(count_runs(problem, run), block)
    piece, outputs = strip(problem, run, block), run * block * channels
    registers = min(255, 40 + outputs // turns // threads)
    given = blocks, threads, piece, channels, turns * problem.s, outputs
    if not tile.get("PACKED", False):
        return (of_outputs(problem, target, *given, registers=registers),)
    taps = problem.terms * channels * max(4, problem.dtype.itemsize)
    return (*packing(problem, channels, 1), of_outputs(problem, target, *given, taps, registers=registers))


DESIGN = Design(refuses=refuses, configs=channels_configs, launches=launches, work=work)
