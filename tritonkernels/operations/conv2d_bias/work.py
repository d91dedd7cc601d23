"""The Work of channel_sums, for both packages."""

from ...choice.work import Work
from ...integers import ceil_div
from ..conv2d.work import touched, unit


def of_sums(problem, channels, lanes, splits, threads, at_once=1):
    """Blocks sum `channels` channels over a range of positions, `lanes` of them at a time, in rounds of `at_once`."""
    positions = ceil_div(problem.terms, splits)
    rounds = ceil_div(positions, lanes * at_once)
    size = max(4, problem.dtype.itemsize)
    return Work(
        ceil_div(problem.k, channels) * splits,
        threads,
        channels * rounds * at_once * lanes,
        unit(problem),
        touched(problem, 1, positions, min(channels, problem.k), problem.k) + channels * size,
        problem.bytes,
        rounds + 2,
    )
