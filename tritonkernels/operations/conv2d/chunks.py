"""Copies in which each group's channels are in whole chunks of 16 bytes, of both packages: pure functions."""

import dataclasses

from ...integers import ceil_div

CHUNK = 16  # bytes


def padded(channels, itemsize):
    """A group's channels in whole chunks."""
    chunk = CHUNK // itemsize
    return ceil_div(channels, chunk) * chunk


def of_copies(problem):
    """The problem of copies of input and filters in channels_last, with zeros behind each group's channels."""
    return dataclasses.replace(problem, c=problem.groups * _padded(problem), channels_last=True)


def copies_pay(problem):
    """Whether copies by 16 bytes, not of an element, may be worth it for a problem in groups: each input has several taps, and
    there are no more zeros than channels."""
    channels, taps = problem.c // problem.groups, problem.r * problem.s
    lies_so = problem.channels_last and channels == _padded(problem)
    return taps > 1 and 0 < _padded(problem) <= 2 * channels and not lies_so


def _padded(problem):
    return padded(problem.c // problem.groups, problem.dtype.itemsize)
