"""Tiles and splits of implicit_gemm: pure functions of problem and target, for both packages."""

from ...integers import ceil_div, next_power_of_2
from ...problem import LARGEST_TILE
from ...validate import is_too_large

LEAST_STEPS = 8  # fewest slices of positions for which a split pays
MOST_SPLITS = 1024


def are_wide(positions):
    """Whether indices of so many need 64 bits, those of the last split too: each split is rounded up to whole slices."""
    return is_too_large(positions + MOST_SPLITS * LARGEST_TILE)


def power_of_2(size, least, most):
    """The next power of two from `size` on, within limits that are powers of two."""
    return min(most, max(least, next_power_of_2(size)))


def count_tiles(problem, block_m, block_n):
    """How many tiles cover the weight, the matrices of all groups."""
    return problem.groups * ceil_div(problem.rows, block_m) * ceil_div(problem.columns, block_n)


def splits_for(problem, target, tiles, step, per_sm):
    """Enough splits to give each SM `per_sm` programs, of at least LEAST_STEPS steps each."""
    wanted = ceil_div(per_sm * max(1, target.sms), max(1, tiles))
    return max(1, min(wanted, problem.terms // (step * LEAST_STEPS), MOST_SPLITS))


def near(splits):
    """The given number of splits, then half and twice as many."""
    return dict.fromkeys((splits, max(1, splits // 2), min(2 * splits, MOST_SPLITS)))


def in_waves(problem, target, tiles, step):
    """The splits that make one, two or four programs for each SM, or a few less, so that none is left for another wave; of at
    least LEAST_STEPS steps each."""
    most = min(problem.terms // (step * LEAST_STEPS), MOST_SPLITS)
    return dict.fromkeys(max(1, min(waves * target.sms // max(1, tiles), most)) for waves in (1, 2, 4))
