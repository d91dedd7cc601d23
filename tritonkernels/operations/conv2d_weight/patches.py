"""`depthwise`, for both packages: what it refuses, its tiles of taps, patches of positions, splits and work: pure functions."""

from ...choice.work import Work
from ...integers import ceil_div
from ..conv2d.work import unit
from .space import MOST_SPLITS, near

MOST_TAPS = 7  # of a column or a row, which a thread holds in registers
STEPS = 1, 2  # strides that are unrolled
MOST_ROUNDED = 2**20  # patches after the last, where each split has whole turns


def refuses(problem, target):
    if problem.c != problem.groups:
        return f"it is for one input channel a group, not {problem.c // problem.groups}"
    if problem.dilation != (1, 1):
        return f"it is for taps side by side, not for a dilation of {problem.dilation}"
    if not set(problem.stride) <= set(STEPS):
        return f"it unrolls strides of 1 and 2, not {problem.stride}"
    if problem.terms >= 2**31 - MOST_ROUNDED:
        return f"it counts patches in 32 bits, and there are {problem.terms} positions"
    return None


def tile_of_taps(problem):
    """(R, S) of the tiles that cover a filter: all of it up to MOST_TAPS, else tiles as equal as can be."""
    return tuple(ceil_div(taps, ceil_div(taps, MOST_TAPS)) for taps in (problem.r, problem.s))


def count_tiles(problem, channels):
    """Blocks for each split, which have `channels` output channels each."""
    r, s = tile_of_taps(problem)
    return ceil_div(problem.k, channels) * ceil_div(problem.r, r) * ceil_div(problem.s, s)


def count_patches(problem, down, across):
    """How many patches an output channel has."""
    return problem.n * ceil_div(problem.p, down) * ceil_div(problem.q, across)


def splits_of(problem, target, channels, patch, at_once, per_sm):
    """Splits with which an SM has `per_sm` blocks, half and twice as many; each has a patch for all threads at least."""
    turns = ceil_div(count_patches(problem, *patch), at_once)
    wanted = per_sm * max(1, target.sms) // max(1, count_tiles(problem, channels))
    return near(max(1, min(wanted, turns, MOST_SPLITS)))


def patches_per_split(problem, patch, at_once, splits):
    """Whole turns of a block, which takes `at_once` patches at a time."""
    return ceil_div(ceil_div(count_patches(problem, *patch), at_once), splits) * at_once


def work_of(problem, channels, patch, at_once, splits, threads, registers):
    """Neighbouring patches of a row find each other's inputs in L1, those above each other read some twice."""
    (down, across), (r, s), (step_h, step_w) = patch, tile_of_taps(problem), problem.stride
    patches = patches_per_split(problem, patch, at_once, splits)
    inputs = ((down - 1) * step_h + r) * across * step_w
    itemsize, sums = problem.dtype.itemsize, r * s * channels
    return Work(
        count_tiles(problem, channels) * splits,
        threads,
        2.0 * patches * channels * down * across * r * s,
        unit(problem),
        patches * channels * (inputs + down * across) * itemsize + sums * (itemsize if splits == 1 else 4),
        problem.bytes,
        3 + patches / at_once,
        registers,
        0,
        sums,
    )
