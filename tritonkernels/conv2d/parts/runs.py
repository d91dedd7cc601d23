"""Unrolled vertical runs of outputs: where they are possible, and their lengths. Pure functions, without Triton."""

import math

from ...operations.conv2d.shapes import COLUMN_ROWS, COLUMN_TAPS

DEPTHWISE_ROWS = 40  # of inputs of a column that one output of `depthwise_channels` meets: its taps are unrolled


def extent(run, problem):
    """Rows of inputs that a run of outputs reads."""
    return (run - 1) * problem.stride[0] + (problem.r - 1) * problem.dilation[0] + 1


def count_runs(problem, run):
    """How many runs of `run` outputs, or fewer at the bottom of a plane."""
    return problem.n * -(-problem.p // run) * problem.q


def unrollable_depthwise(problem):
    """Whether there is one filter per channel, whose columns are short enough to be unrolled."""
    return problem.c == problem.groups == problem.k and extent(1, problem) <= DEPTHWISE_ROWS


def refuses(problem, target):
    if problem.r > COLUMN_TAPS:
        return f"it holds the taps of a column in registers: up to {COLUMN_TAPS}, not {problem.r}"
    if extent(1, problem) > COLUMN_ROWS:
        return f"it unrolls the rows from a column's first tap to its last: up to {COLUMN_ROWS}, not {extent(1, problem)}"
    return None


def side_by_side(t, channels, most):
    """How many channels of a group, up to `most`, one aligned load can read in every pixel."""
    apart = [stride for dim, (size, stride) in enumerate(zip(t.shape, t.stride())) if dim != 1 and size > 1]
    if t.stride(1) != 1:
        return 1
    whole = math.gcd(channels, most, *apart) * t.element_size()
    return max(1, math.gcd(whole, t.data_ptr(), 16) // t.element_size())


def best_run(problem, most, fits=lambda run: True, rows=COLUMN_ROWS):
    """The run of up to `most` outputs, of up to `rows` inputs, that loads the fewest rows of a plane; the longest of equals."""
    legal = [run for run in range(1, most + 1) if run == 1 or (extent(run, problem) <= rows and fits(run))]
    return min(legal, key=lambda run: (-(-max(1, problem.p) // run) * extent(run, problem), -run))
