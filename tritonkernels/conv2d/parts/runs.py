"""Runs of outputs below each other that are unrolled, and the config space of grouped. Pure functions."""

import math

import torch
import triton

from .regime import COLUMN_ROWS, COLUMN_TAPS

MOST_HELD = 48  # taps in registers, of a column and the channels that are loaded together
REGISTERS = 128  # which leave an SM 16 warps; of longer columns and other types ptxas spills a few
BUDGET = 116  # of them, for sums, taps and inputs


def extent(run, problem):
    """Rows of inputs that a run of outputs meets."""
    return (run - 1) * problem.stride[0] + (problem.r - 1) * problem.dilation[0] + 1


def one_filter_each(problem):
    """Whether there is one filter for each channel, so small that its runs are unrolled."""
    return problem.c == problem.groups == problem.k > 1 and problem.s <= COLUMN_TAPS and refuses(problem, None) is None


def refuses(problem, target):
    if problem.r > COLUMN_TAPS:
        return f"it holds the taps of a column in registers: up to {COLUMN_TAPS}, not {problem.r}"
    if extent(1, problem) > COLUMN_ROWS:
        return f"it unrolls the rows that a column of taps meets: up to {COLUMN_ROWS}, not {extent(1, problem)}"
    return None


def side_by_side(t, channels, most):
    """How many channels of a group, up to `most`, lie side by side and begin at a multiple of as many bytes, in every pixel."""
    apart = [stride for dim, (size, stride) in enumerate(zip(t.shape, t.stride())) if dim != 1 and size > 1]
    if t.stride(1) != 1:
        return 1
    whole = math.gcd(channels, most, *apart) * t.element_size()
    return max(1, math.gcd(whole, t.data_ptr(), 16) // t.element_size())


def words_of(problem):
    """Registers of a sum."""
    return 2 if problem.dtype == torch.float64 else 1


def at_once(problem, kt):
    """How many channels of a group are loaded together: those whose taps can be held, up to 16 bytes of fp32."""
    held = max(1, min(4 // words_of(problem), MOST_HELD // (problem.r * kt)))
    return math.gcd(1 << held.bit_length() - 1, problem.c // problem.groups)


def best_run(problem, most, fits=lambda run: True):
    """Of up to `most` outputs, the run that loads fewest rows of a plane, of those the longest."""
    legal = [run for run in range(1, most + 1) if run == 1 or (extent(run, problem) <= COLUMN_ROWS and fits(run))]
    return min(legal, key=lambda run: (triton.cdiv(max(1, problem.p), run) * extent(run, problem), -run))


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
