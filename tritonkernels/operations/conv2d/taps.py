"""Filters as warp_specialized reads them in both packages: by TMA, a matrix for each tap, and taps in any order."""

from typing import NamedTuple

CHUNK = 16  # bytes, in which TMA counts strides


class Taps(NamedTuple):
    """Where the taps of a convolution are among those of the filter that it is given: tap (r, s) is number first + r * down +
    s * right. Of a filter that is read from its last tap to the first, `down` and `right` are negative."""

    first: int
    down: int
    right: int


def every_tap(problem):
    """The Taps of a filter that is the convolution's own."""
    return Taps(0, problem.s, 1)


def lie_along(filters, dim):
    """Whether TMA can read filters (K, C, R, S) as a matrix for each tap, with lines along dimension 0 or 1."""
    _, _, r, s = filters.shape
    apart = [filters.stride(other) for other in (1 - dim, 2, 3) if filters.shape[other] > 1]
    chunk = CHUNK // filters.itemsize
    in_chunks = filters.shape[dim] % chunk == 0 and filters.stride(dim) == 1 and filters.data_ptr() % CHUNK == 0
    evenly = 1 in (r, s) or filters.stride(2) == s * filters.stride(3)
    return in_chunks and evenly and all(stride > 0 and stride % chunk == 0 for stride in apart)


def are_across(filters):
    """Whether TMA can read them with lines along K, and not along C, and wgmma takes such lines: not of tf32."""
    return filters.itemsize == 2 and lie_along(filters, 0) and not lie_along(filters, 1)


def lines_of_gradient(filters):
    """How the gradient of the input reads filters (K, C, R, S): (the dimension that lines are along; the dimensions in the
    order in which a copy into channels_last makes such lines). 16 bits lie across that convolution's reduction, tf32 along it:
    where C lies inside, its copy reads planes of (S, C)."""
    if filters.itemsize == 2:
        return 1, (0, 1, 2, 3)
    return 0, (2, 0, 3, 1) if filters.stride(1) == 1 else (1, 0, 2, 3)


def matrices(filters, across):
    """(taps, K, C), or `across` (taps, C, K)."""
    order = (2, 3, 1, 0) if across else (2, 3, 0, 1)
    return filters.permute(order).flatten(0, 1)
