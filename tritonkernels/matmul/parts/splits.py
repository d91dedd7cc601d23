"""How many splits of K the configs of split_k have, in both packages."""

LEAST = 256  # products of a split: with fewer it costs more than it brings
SPLITS = (2, 4, 8, 16, 32, 64)


def split_counts(problem, target, rows, columns):
    """2, 4, and more powers of two, of LEAST products each at least, while tiles of rows x columns are few blocks."""
    blocks = problem.batch * -(-problem.m // rows) * -(-problem.n // columns)
    return [s for s in SPLITS if s <= 4 or (s * LEAST <= problem.k and s * blocks <= 4 * target.sms)]


def without_empty(splits, slices):
    """So many splits, or the fewer ones that so many slices make, the same number each but for the last."""
    return -(-slices // -(-slices // min(splits, slices)))
