"""The config spaces of `depthwise`, `depthwise_channels` and `grouped`, whose lanes own runs of outputs. Pure functions."""

import math

import torch

from ...config import config_of
from ...integers import ceil_div, next_power_of_2
from .runs import DEPTHWISE_ROWS, best_run, count_runs, extent

MOST_UNROLLED = 7  # taps of a column
MOST_LOADED = 3  # of those that load four inputs each
MOST_HELD = 48  # taps in registers, of a column and the channels that are loaded together
REGISTERS = 128  # with which an SM holds 16 warps; for longer columns and other types ptxas spills a few
BUDGET = 116  # of them, for sums, taps and inputs
MOST_KEPT = 9  # taps of a filter that `depthwise_channels` keeps in registers
MOST_ROWS = 20  # of inputs, of four channels, with which a run of 8 fits REGISTERS
PACKED_TILES = (4, 8, None), (4, 8, REGISTERS), (4, 14, None), (2, 8, None), (2, 4, None)  # its warps, runs, most registers
NCHW_TILES = (4, 8), (4, 16), (2, 8), (2, 4)  # its warps and runs of one channel a lane


def depthwise_configs(problem, target):
    """A lane has four channels where they lie side by side, else one, of a run or two. Left to itself ptxas spills a few words
    to fit more warps on an SM than bandwidth needs. The interpreter's cost is per operation: it gets large blocks."""
    channels = next_power_of_2(max(1, problem.k))
    if not target.is_gpu:
        block_k = min(64, channels)
        runs = next_power_of_2(max(1, count_runs(problem, 4)))
        yield config_of({"BLOCK": min(2**14 // block_k, runs), "BLOCK_K": block_k})
    if problem.channels_last and channels > 1:
        block_k, a_lane = min(32, channels), 16 // max(4, problem.dtype.itemsize)
        for warps in (4, 8):
            block = target.warp_size * warps * a_lane // block_k
            yield config_of({"BLOCK": block, "BLOCK_K": block_k}, num_warps=warps, num_stages=1, maxnreg=128)
    for runs in (2, 1):
        warps = 128 // target.warp_size
        yield config_of({"BLOCK": 128 * runs, "BLOCK_K": 1}, num_warps=warps, num_stages=1, maxnreg=64 * runs)


def taps_unrolled(problem, slides):
    """How many taps of a column `depthwise` unrolls: all of a short one."""
    return problem.r if problem.r <= (MOST_UNROLLED if slides else MOST_LOADED) else 1


def channels_configs(problem, target):
    """In channels_last a lane has four channels, in NCHW one. The interpreter's cost is per operation: it gets many runs at
    once."""
    inside, few = problem.channels_last, problem.r * problem.s <= MOST_KEPT
    block_k, a_lane = (min(32, next_power_of_2(problem.k)), 16 // max(4, problem.dtype.itemsize)) if inside else (1, 1)

    def config(warps, run, turns=1, maxnreg=None, **packed):
        block = target.warp_size * warps * a_lane // block_k
        tile = {"RUN": run, "BLOCK": block, "BLOCK_K": block_k, "TURNS": turns} | packed
        return config_of(tile, num_warps=warps, num_stages=1, maxnreg=maxnreg)

    def run(most):
        return best_run(problem, most, rows=DEPTHWISE_ROWS)

    if not target.is_gpu:
        packed = {"PACKED": True} if inside and not few else {}
        yield config_of({"RUN": run(4), "BLOCK": 256, "BLOCK_K": block_k, "TURNS": 2} | packed)
    elif inside:
        # Strided inputs meet fewer taps: those in registers serve another block of runs, too
        several = 2 if problem.stride[0] > 1 and few else 1
        for warps, turns in ((4, several), (2, several), (4, 3 - several)):
            yield config(warps, run(8), turns)
        if not few:  # a load then brings the taps of four channels
            for warps, length, most in dict.fromkeys((w, run(n), r) for w, n, r in PACKED_TILES):
                if most is None or extent(length, problem) <= MOST_ROWS:
                    yield config(warps, length, maxnreg=most, PACKED=True)
    else:
        for warps, length in dict.fromkeys((w, run(n)) for w, n in NCHW_TILES):
            yield config(warps, length)


def words_of(problem):
    """Registers of a sum."""
    return 2 if problem.dtype == torch.float64 else 1


def at_once(problem, kt):
    """How many channels of a group are loaded together: those whose taps can be held, up to 16 bytes of fp32."""
    held = max(1, min(4 // words_of(problem), MOST_HELD // (problem.r * kt)))
    return math.gcd(1 << held.bit_length() - 1, problem.c // problem.groups)


def grouped_configs(problem, target):
    """The configs with groups.

    In channels_last a lane has four channels, whose taps are 16 bytes, and a program is one run of up to 128 lanes: what
    depends on its pixels alone is uniform and takes no vector registers. Else eight channels, as a load brings one input.
    """
    outputs, words, uniform = problem.k // problem.groups, words_of(problem), problem.channels_last or not target.is_gpu
    kt = min((4 if uniform else 8) // words, next_power_of_2(max(1, outputs)))
    channels = at_once(problem, kt) if problem.channels_last else 1
    most_lanes = next_power_of_2(max(1, problem.groups * ceil_div(outputs, kt)))

    def fits(run):
        return words * (run * kt + (problem.r * kt + extent(run, problem)) * channels) <= BUDGET

    run = best_run(problem, 8 if target.is_gpu else 4, fits)

    def tile(lanes, threads):
        lanes = min(lanes, most_lanes)
        return {"RUN": run, "BLOCK": max(1, threads // lanes), "LANES": lanes, "KT": kt}

    if not target.is_gpu:
        own = tile(16, 2**13)
        runs = next_power_of_2(max(1, count_runs(problem, run)))
        yield config_of(own | {"BLOCK": min(own["BLOCK"], runs)})
    elif problem.channels_last:
        found = [tile(lanes, target.warp_size) for lanes in (128, 64, 32)]
        most = REGISTERS if problem.dtype == torch.float32 and problem.r <= 3 else None
        for i, one in enumerate(found):
            if one not in found[:i]:
                yield config_of(one, num_warps=max(1, one["LANES"] // target.warp_size), num_stages=1, maxnreg=most)
        yield config_of(found[-1] | {"BLOCK": 2 * found[-1]["BLOCK"]}, num_warps=2, num_stages=1)
    else:
        for warps in (4, 2):
            yield config_of(tile(1, target.warp_size * warps), num_warps=warps, num_stages=1)
