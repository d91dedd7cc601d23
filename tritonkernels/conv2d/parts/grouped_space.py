"""The config space of `grouped`: lanes, runs and channels that leave its sums, taps and inputs in registers. Pure functions."""

import math

import torch
import triton

from .runs import best_run, extent

MOST_HELD = 48  # taps in registers, of a column and the channels that are loaded together
REGISTERS = 128  # which leave an SM 16 warps; of longer columns and other types ptxas spills a few
BUDGET = 116  # of them, for sums, taps and inputs


def words_of(problem):
    """Registers of a sum."""
    return 2 if problem.dtype == torch.float64 else 1


def at_once(problem, kt):
    """How many channels of a group are loaded together: those whose taps can be held, up to 16 bytes of fp32."""
    held = max(1, min(4 // words_of(problem), MOST_HELD // (problem.r * kt)))
    return math.gcd(1 << held.bit_length() - 1, problem.c // problem.groups)


def configs(problem, target):
    """In channels_last four channels a lane, whose taps are 16 bytes, and a program is one run of up to 128 lanes: what belongs
    to its pixels is the same for all, and takes no registers of theirs. Else eight channels, as a load brings one input."""
    outputs, words = problem.k // problem.groups, words_of(problem)

    def tile(kt, lanes, threads, most=8):
        kt = min(kt // words, triton.next_power_of_2(max(1, outputs)))
        lanes = min(lanes, triton.next_power_of_2(max(1, problem.groups * triton.cdiv(outputs, kt))))
        channels = at_once(problem, kt) if problem.channels_last else 1

        def fits(run):
            return words * (run * kt + (problem.r * kt + extent(run, problem)) * channels) <= BUDGET

        return {"RUN": best_run(problem, most, fits), "BLOCK": max(1, threads // lanes), "LANES": lanes, "KT": kt}

    if not target.is_gpu:
        own = tile(4, 16, 2**13, 4)
        runs = triton.next_power_of_2(max(1, problem.n * triton.cdiv(problem.p, own["RUN"]) * problem.q))
        yield triton.Config(own | {"BLOCK": min(own["BLOCK"], runs)})
    elif problem.channels_last:
        found = [tile(4, lanes, target.warp_size) for lanes in (128, 64, 32)]
        most = REGISTERS if problem.dtype == torch.float32 and problem.r <= 3 else None
        for i, one in enumerate(found):
            if one not in found[:i]:
                yield triton.Config(one, num_warps=max(1, one["LANES"] // target.warp_size), num_stages=1, maxnreg=most)
        yield triton.Config(found[-1] | {"BLOCK": 2 * found[-1]["BLOCK"]}, num_warps=2, num_stages=1)
    else:
        for kt, warps in ((8, 4), (8, 2)):
            yield triton.Config(tile(kt, 1, target.warp_size * warps), num_warps=warps, num_stages=1)
