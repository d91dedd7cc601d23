"""The choice of a gemv design: a predicted time for each, from bytes, lanes, loads in flight and waves; the shortest is
preferred.

A product takes as long as the longest of three things: its bytes at the bandwidth of the level that holds them, one launch,
and the chain of latencies that its threads wait for, one after the other,

    chain = max(1, waves) * (steps / unroll * latency + reduction),    waves = threads / (SMs * threads per SM),

where a row of N elements is ceil(N / width) loads, steps = ceil(loads / threads of a row). It covers the losses of a design:
idle lanes (threads without a load still take part of a wave), too little in flight (few threads, hence many steps), and the
reduction. By Little's law, bytes / chain is what the loads in flight sustain.

Pure functions of (problem, target), for both packages. The latencies are an H200's, in round numbers; nothing here is fitted.
"""

import math
from dataclasses import dataclass

from ...analysis.sectors import SECTOR
from .shapes import BLOCK, UNROLL, splits_of_row, sub_warp, threads_of_row, tile_of_columns
from .vectors import full_vector

LAUNCH = 2e-6  # seconds: an empty kernel in a graph
LATENCY = {"L2": 300e-9, "DRAM": 700e-9}
SHUFFLE = 15e-9  # a step of a warp's reduction
BARRIER = 100e-9  # a reduction across warps, through shared memory
LAST_BLOCK = 1e-6  # partial sums to L2, an atomic, partial sums back
UNKNOWN = 1e12  # bytes per second, of a GPU that the table does not know: it cancels in a comparison of designs


@dataclass(frozen=True)
class Expected:
    """`seconds` of one call with its bytes in `level`, and what they come from."""

    seconds: float
    bandwidth: float  # compulsory bytes / seconds
    level: str
    bytes_s: float
    chain_s: float
    lanes_busy: float  # of the lanes of a row, on average over its steps
    bytes_in_flight: float  # on the whole GPU
    waves: float


@dataclass(frozen=True)
class Shape:
    """How a design splits the work: threads in all, steps of each, loads in flight of each, seconds at the end."""

    threads: float
    steps: int
    unroll: int
    width: int  # bytes of a load
    reduction: float
    busy: float
    waste: float = 1.0  # bytes that the caches move for each that is used


def _of_rows(problem, threads, width, unroll, reduction):
    """`threads` walk a row together, loading `width` bytes each."""
    loads = max(1, math.ceil(problem.n * problem.a_dtype.itemsize / width))
    steps = math.ceil(loads / threads)
    row_bytes = problem.n * problem.a_dtype.itemsize  # up to a sector, all of it is used at once
    width = width if row_bytes >= width else problem.a_dtype.itemsize
    contiguous = problem.a_layout == ("col" if threads == 1 else "row") or (problem.a_layout == "row" and row_bytes <= SECTOR)
    waste = 1.0 if contiguous else SECTOR / problem.a_dtype.itemsize
    unroll = min(unroll, steps)
    return Shape(problem.rows * threads, steps, unroll, width, reduction, loads / (steps * threads), waste)


def _shuffles(lanes):
    return SHUFFLE * math.log2(lanes)


def _transposed(problem, target):
    lanes, threads, splits = tile_of_columns(problem, target)
    tile, depth = lanes * full_vector(problem.a_dtype), threads // lanes
    tiles = problem.batch * math.ceil(problem.m / tile)
    steps = max(1, math.ceil(problem.n / (depth * splits)))
    busy = problem.m / (math.ceil(problem.m / tile) * tile)
    waste = 1.0 if problem.a_layout == "col" else SECTOR / problem.a_dtype.itemsize
    reduction = BARRIER + (LAST_BLOCK if splits > 1 else 0)
    return Shape(tiles * splits * threads, steps, min(UNROLL, steps), 16, reduction, busy, waste)


# The order is that of the ladder: of equals the first is preferred. staged_x is never faster than warp_per_row.
SHAPES = {
    "naive": lambda p, t: _of_rows(p, 1, p.a_dtype.itemsize, 1, 0.0),
    "warp_per_row": lambda p, t: _of_rows(p, t.warp_size, p.a_dtype.itemsize, 4, _shuffles(t.warp_size)),
    "staged_x": lambda p, t: _of_rows(p, t.warp_size, p.a_dtype.itemsize, 1, _shuffles(t.warp_size) + BARRIER),
    "vectorized": lambda p, t: _of_rows(p, t.warp_size, 16, UNROLL, _shuffles(t.warp_size)),
    "rows_per_warp": lambda p, t: _of_rows(p, sub_warp(p), 16, UNROLL, _shuffles(sub_warp(p))),
    "block_per_row": lambda p, t: _of_rows(p, threads_of_row(p), 16, UNROLL, _shuffles(t.warp_size) + BARRIER),
    "split_n": lambda p, t: _of_rows(p, BLOCK * splits_of_row(p, t), 16, UNROLL, _shuffles(t.warp_size) + BARRIER + LAST_BLOCK),
    "transposed": _transposed,
}


def expected(design, problem, target):
    """The Expected of a design, by name; None where there is no GPU, nothing to do or no Shape of the design."""
    if not target.is_gpu or not problem.rows or design not in SHAPES:
        return None
    shape = SHAPES[design](problem, target)
    level = "L2" if 2 * problem.bytes <= target.l2_bytes else "DRAM"  # half of it: L2 has two sides
    dram = target.dram_bandwidth or UNKNOWN
    rate = (target.l2_bandwidth or 2 * dram) if level == "L2" else dram
    slots = target.sms * target.threads_per_sm
    waves = shape.threads / slots
    in_flight = min(shape.threads, slots) * shape.busy * shape.unroll * shape.width
    bytes_s = problem.bytes * shape.waste / rate
    chain_s = max(1.0, waves) * (math.ceil(shape.steps / shape.unroll) * LATENCY[level] + shape.reduction)
    seconds = max(bytes_s, chain_s, LAUNCH)
    return Expected(seconds, problem.bytes / seconds, level, bytes_s, chain_s, shape.busy, in_flight, waves)


def prefer(problem, target):
    """The design with the shortest time. Ties (limited by bytes or the launch) go to one that wastes no bytes, then to the most
    bytes in flight per thread, then to the most threads of a block on a row, which read the longest pieces. Contiguous columns
    have their own design, at any size.
    """
    if problem.a_layout == "col" and problem.m > 1:
        return "transposed"
    if not target.is_gpu or not problem.rows:
        return "vectorized"

    def cost(name):
        shape = SHAPES[name](problem, target)
        in_flight, on_a_row = round(shape.busy * shape.unroll * shape.width), min(shape.threads / problem.rows, BLOCK)
        return expected(name, problem, target).seconds, shape.waste, -in_flight, -on_a_row

    return min(SHAPES, key=cost)
