"""The choice of a conv2d design: an estimated time for each, from arithmetic, bytes, gathers and latencies.

A convolution takes as long as the longest of four things, and at least as long as a launch:

    arithmetic = FLOPs / (share of busy lanes * peak of the unit * share of it that the design sustains * SMs that have a block)
    bytes      = compulsory traffic * sectors fetched per sector used / bandwidth
    gathers    = elements of the im2col matrix / what address arithmetic lets an SM fetch, a vector at a time where channels lie
                 side by side (only implicit_gemm: the other designs keep inputs that taps share in shared memory or registers)
    chain      = the latencies that follow each other: of a thread's taps, or of a block's channels

The shares are fitted to an H200's runs over the suites of filters and of ResNet-50's layers, in round numbers, both packages
together. Pure functions of (problem, target); without a GPU, or with an unknown one, the figures are an H200's.
"""

import math
from dataclasses import dataclass, replace

import torch

from ...analysis.sectors import SECTOR
from ...target import Target
from .shapes import BIG_TILE, COLUMN_ROWS, COLUMN_TAPS, MOST_CHANNELS, STAGED_BYTES, TILE, blocked_bytes

LAUNCH = 2e-6  # seconds: an empty kernel in a graph
GATHERED = 1 / 120  # elements that are gathered one by one in the time of a FLOP of the CUDA cores
TAP = {"naive": 100e-9, "depthwise": 120e-9, "direct": 150e-9, "prefetched": 150e-9}  # of a thread, with all that it waits for
BLOCKS_AT_ONCE = 32  # on an SM, of a warp each
UNROLLED = 25  # taps of `depthwise`
CHANNEL = 1.5e-6  # of a block of register_blocked: a channel's inputs and filters to shared memory, and back
LOAD = 500e-9  # of a column of inputs of `grouped`
SLICE = 300e-9  # of K, 64 terms, of a block of implicit_gemm or matmul, a few of them in flight
MOST_SPLITS = 16  # blocks that share a tile of theirs


def busy_lanes(problem, tile):
    """The share of a tile's positions that are outputs, over all tiles of a plane."""
    tiles = -(-problem.p // tile[0]) * -(-problem.q // tile[1])
    return problem.p * problem.q / (tiles * tile[0] * tile[1]) if tiles else 1.0


@dataclass(frozen=True)
class Expected:
    """`seconds` of one call, and what they come from."""

    seconds: float
    arithmetic_s: float
    bytes_s: float
    gather_s: float
    chain_s: float
    lanes_busy: float  # of those that multiply


@dataclass(frozen=True)
class Shape:
    """A design on a problem: the share of the peak that it sustains, busy lanes, blocks, seconds of latency in sequence."""

    share: float
    busy: float
    blocks: float
    chain: float
    tensor_cores: bool = False
    gathered: float = 0.0  # elements
    waste: float = 1.0  # bytes fetched per byte used


def _of_taps(name, share, tile):
    """A thread for each output, in blocks of 256; or `tile` of outputs, mostly a warp."""

    def shape(problem):
        busy = busy_lanes(problem, tile) if tile else 1.0
        if not tile:
            return Shape(share, busy, problem.outputs / 256, problem.terms * TAP[name], waste=_sectors_of_a_group(problem))
        blocks = problem.outputs / busy / (tile[0] * tile[1] * min(MOST_CHANNELS, max(1, problem.k // problem.groups)))
        waves = max(1.0, blocks / (Target.named("h200").sms * BLOCKS_AT_ONCE))
        return Shape(share, busy, blocks, waves * problem.terms * TAP[name], waste=_sectors_of_a_group(problem))

    return shape


def _depthwise(problem):
    """Its threads keep four output channels; without a sum over channels nothing else is shared. A warp reads along whatever
    is contiguous."""
    channels, outputs = problem.c // problem.groups, problem.k // problem.groups
    share = (0.1 if problem.terms <= UNROLLED else 0.065) * min(outputs, 16 / outputs) if channels == 1 else 0.055
    return Shape(share, 1.0, problem.outputs / 256, problem.terms * TAP["depthwise"])


def _depthwise_channels(problem):
    """As `depthwise`, where each of channels that lie side by side has one filter."""
    return _depthwise(problem) if problem.channels_last and problem.c == problem.groups == problem.k else None


def _register_blocked(problem):
    """A load feeds as many multiply-adds as there are output channels in the block. None if its tile does not fit."""
    if blocked_bytes(problem, MOST_CHANNELS) > STAGED_BYTES or problem.dtype == torch.float64:
        return None
    outputs, busy = min(problem.k // problem.groups, MOST_CHANNELS), busy_lanes(problem, BIG_TILE)
    channel_blocks = math.ceil(problem.k / problem.groups / MOST_CHANNELS)
    blocks = problem.n * problem.groups * channel_blocks * problem.p * problem.q / busy / (BIG_TILE[0] * BIG_TILE[1])
    chain = problem.c / problem.groups * CHANNEL
    return Shape(0.4 * outputs / (outputs + 4), busy, blocks, chain, waste=_sectors_of_a_group(problem))


def _grouped(problem):
    """A load feeds a dozen multiply-adds or more, less where runs are strided; that of the next channels waits for these.
    Filters are packed first. None where it cannot unroll a column, and where there are no groups of several channels; but for
    a 3 x 3 filter in NCHW of so few output channels that a thread has them all."""
    channels, outputs = problem.c // problem.groups, problem.k // problem.groups
    column = (problem.r - 1) * problem.dilation[0] + 1
    few = outputs <= 4 and (problem.r, problem.s) == (3, 3) and not problem.channels_last
    if problem.r > COLUMN_TAPS or column > COLUMN_ROWS or channels == 1 or (problem.groups == 1 and not few):
        return None
    busy = outputs / (math.ceil(outputs / 4) * 4)
    loads = problem.s * math.ceil(channels / 4 if problem.channels_last else channels)  # one after the other
    share = 0.28 if problem.stride[0] == 1 else 0.2
    return Shape(share, busy, problem.outputs / (8 * 4 * 128), LAUNCH + loads * LOAD)


def _product(problem, share, tile=64, most_splits=MOST_SPLITS):
    """A matrix product of (pixels, terms) and (terms, output channels), by groups, in tiles of 128 x `tile`; where these are
    few, up to `most_splits` blocks share one."""
    outputs, pixels = problem.k / problem.groups, problem.n * problem.p * problem.q
    least = 16 if _on_tensor_cores(problem) else 32  # output channels
    busy = outputs / (math.ceil(outputs / least) * least) * problem.terms / (math.ceil(problem.terms / 16) * 16)
    tiles, slices = problem.groups * math.ceil(pixels / 128) * math.ceil(outputs / tile), math.ceil(problem.terms / 64)
    splits = max(1, min(most_splits, slices))
    return Shape(share, busy, tiles * splits, (slices / splits + 2) * SLICE, _on_tensor_cores(problem))


def _on_tensor_cores(problem):
    return problem.precision not in ("ieee", "fp64")


def _implicit_gemm(problem):
    """The prologue and epilogue of a tile cost as much as 200 to 250 terms."""
    share, tile = (0.35, 250) if _on_tensor_cores(problem) else (0.45, 200)
    shape = _product(problem, share * problem.terms / (problem.terms + tile))
    vector = 16 // problem.dtype.itemsize
    channels = problem.c // problem.groups
    elements = problem.n * problem.p * problem.q * problem.terms * problem.groups * math.ceil(problem.k / problem.groups / 128)
    return replace(shape, gathered=elements / (vector if problem.channels_last and channels % vector == 0 else 1))


def _matmul(problem):
    """matmul's large tiles, fast with many terms and output channels. None if the convolution is no matmul."""
    if (problem.r, problem.s, *problem.stride, *problem.padding, problem.groups) != (1, 1, 1, 1, 0, 0, 1):
        return None
    if not _on_tensor_cores(problem):
        return _product(problem, 0.5 * problem.terms / (problem.terms + 60), tile=128, most_splits=1)
    return _product(problem, 0.8 * problem.terms / (problem.terms + 300) * problem.k / (problem.k + 128))


def _sectors_of_a_group(problem):
    """Bytes fetched for each used where pixels hold the channels of other groups between those of one."""
    apart = problem.channels_last and problem.groups > 1
    channels = problem.c // problem.groups
    return max(1.0, min(SECTOR / problem.dtype.itemsize, problem.c) / channels) if apart else 1.0


# Of equals the first is preferred. winograd's bound is weaker, so it must be named
SHAPES = {
    "naive": _of_taps("naive", 0.03, None),
    "depthwise_channels": _depthwise_channels,
    "depthwise": _depthwise,
    "direct": _of_taps("direct", 0.09, TILE),
    "prefetched": _of_taps("prefetched", 0.09, TILE),
    "register_blocked": _register_blocked,
    "grouped": _grouped,
    "implicit_gemm": _implicit_gemm,
    "matmul": _matmul,  # the design that it prefers
}


def expected(design, problem, target):
    """The Expected of a design, by name; None if it has no rule, does not fit or has nothing to do."""
    design = design.partition(".")[0]
    shape = SHAPES[design](problem) if design in SHAPES and problem.outputs and problem.terms else None
    if shape is None:
        return None
    known = target if target.peak("ieee") and target.dram_bandwidth else Target.named("h200")
    cuda_cores = known.peak("fp64" if problem.dtype == torch.float64 else "ieee")
    peak = known.peak(problem.precision) or cuda_cores if shape.tensor_cores else cuda_cores
    arithmetic_s = problem.flops / (peak * shape.share * shape.busy * min(1.0, shape.blocks / known.sms))
    gather_s = shape.gathered / (GATHERED * known.peak("ieee"))
    bytes_s = problem.bytes * shape.waste / known.dram_bandwidth
    seconds = max(arithmetic_s, bytes_s, gather_s, shape.chain, LAUNCH)
    return Expected(seconds, arithmetic_s, bytes_s, gather_s, shape.chain, shape.busy)


def prefer(problem, target):
    """Names of the designs that fit, the shortest time first: a package takes the first that does not refuse.

    Of equal times (both bound by the launch, or by bytes) the one with the smallest sum of all four is first.
    """
    times = {name: expected(name, problem, target) for name in SHAPES}
    fitting = {
        name: (time.seconds, time.arithmetic_s + time.bytes_s + time.gather_s + time.chain_s)
        for name, time in times.items()
        if time
    }
    return tuple(sorted(fitting, key=fitting.get)) or ("direct",)
