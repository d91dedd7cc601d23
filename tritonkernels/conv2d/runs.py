"""Runs of outputs below each other that are unrolled, and the config space of grouped. Pure functions."""

import math

import torch
import triton

from .regime import COLUMN_ROWS, COLUMN_TAPS

OF_CHANNELS_LAST = ((4, 32, 4, 128), (4, 32, 4, None), (4, 64, 4, 128))  # (KT, LANES, warps, most registers)
OF_PIXELS = ((8, 1, 4, None), (4, 1, 4, None), (8, 1, 2, None))


def extent(run, problem):
    """Rows of inputs that a run of outputs meets."""
    return (run - 1) * problem.stride[0] + (problem.r - 1) * problem.dilation[0] + 1


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


def best_run(problem, most):
    """Of up to `most` outputs, the run that leaves least of the last one of a plane idle, of those the longest."""
    legal = [run for run in range(1, most + 1) if extent(run, problem) <= COLUMN_ROWS]
    return min(legal, key=lambda run: (triton.cdiv(max(1, problem.p), run) * (run + 2), -run))


def configs(problem, target):
    """Runs of up to eight outputs; of four channels in channels_last, whose taps are 16 bytes, else of eight, as a load brings
    one input only. Lanes along channels are as many as have inputs of 128 bytes between them, or more."""
    outputs, doubles = problem.k // problem.groups, problem.dtype == torch.float64

    def tile(kt, block, lanes, most):
        kt = min(kt, triton.next_power_of_2(max(1, outputs)))
        lanes = min(lanes, triton.next_power_of_2(max(1, problem.groups * triton.cdiv(outputs, kt))))
        return {"RUN": best_run(problem, most), "BLOCK": block // lanes, "LANES": lanes, "KT": kt}

    if not target.is_gpu:
        own = tile(4, 2**13, 16, 4)
        runs = triton.next_power_of_2(max(1, problem.n * triton.cdiv(problem.p, own["RUN"]) * problem.q))
        yield triton.Config(own | {"BLOCK": min(own["BLOCK"], runs)})
    tried = []
    for kt, lanes, warps, registers in OF_CHANNELS_LAST if problem.channels_last else OF_PIXELS:
        found = tile(kt // 2 if doubles else kt, 32 * warps, lanes, 4 if doubles else 8)
        if (found, warps, registers) not in tried:
            tried.append((found, warps, registers))
            yield triton.Config(found, num_warps=warps, num_stages=1, maxnreg=registers)
