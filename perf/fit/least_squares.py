"""Robust least squares on the logarithm of time: shares and factors that predict Samples best (Levenberg and Marquardt's way).

Minimised is

    sum of huber(log predicted - log measured)
    + OF_DESIGN / 2 * |log shares common to the precisions - log of their prior|^2
    + OF_PRECISION / 2 * sum over precisions of |log shares - log common shares|^2
    + FACTORS / 2 * |log factors|^2

over shares within bounds. Huber's function is half the square up to OUTLIER and grows linearly beyond, so that a wrong time
moves little. The other sums stand for so many records that say that the design is as its operation's others, a precision as the
design's others, and a factor 1: few records change little.
"""

from typing import NamedTuple

import numpy

from tritonkernels.choice.efficiency import SHARES

OUTLIER = 0.2  # of log time
OF_DESIGN, OF_PRECISION, FACTORS = 0.5, 2.0, 6.0  # FACTORS: of 0.5 to 30 what chose best where nothing was fitted
BOUNDS = {share: (1e-3, 1.5) for share in SHARES}
BOUNDS |= {"compute": (1e-3, 1.0), "memory": (1e-3, 1.0), "launch": (0.3, 3.0), "next_launch": (0.2, 3.0)}
STEPS, ENOUGH = 300, 1e-9  # at most, and the relative gain at which they end

_LEAST, _MOST = numpy.log(numpy.array([BOUNDS[share] for share in SHARES])).T


class Fit(NamedTuple):
    """shares: (precisions, SHARES); common: (SHARES,); factors: those of Samples.names."""

    shares: numpy.ndarray
    common: numpy.ndarray
    factors: numpy.ndarray


def fit(samples, prior):
    """The Fit of Samples, from the shares expected before."""
    rows, names = len(samples.precisions) + 1, len(samples.names)  # the last row of shares has the common ones
    ends = numpy.full(names, 5.0)
    least, most = numpy.concatenate([*[_LEAST] * rows, -ends]), numpy.concatenate([*[_MOST] * rows, ends])
    expected, strength = numpy.concatenate([*[numpy.log(prior)] * rows, numpy.zeros(names)]), _strength(rows, names)
    at, damping = numpy.clip(expected, least, most), 1e-3
    loss, gradient, curvature = _quadratic(samples, at, expected, strength)
    for _ in range(STEPS):
        free = ~(((at <= least) & (gradient > 0)) | ((at >= most) & (gradient < 0)))
        if not free.any():
            break
        inner = curvature[numpy.ix_(free, free)]
        step = numpy.zeros_like(at)
        step[free] = numpy.linalg.solve(inner + damping * numpy.diag(numpy.diag(inner) + 1e-9), -gradient[free])
        there = numpy.clip(at + step, least, most)
        tried = _quadratic(samples, there, expected, strength)
        if tried[0] >= loss:
            damping *= 4
            if damping > 1e9:
                break
            continue
        gain, at, (loss, gradient, curvature) = loss - tried[0], there, tried
        damping = max(damping / 3, 1e-9)
        if gain <= ENOUGH * loss:
            break
    return Fit(*_apart(at, rows))


def _apart(at, rows):
    """(shares of each precision, common ones, factors), from their logarithms in one array."""
    shares = numpy.exp(at[: rows * len(SHARES)]).reshape(rows, -1)
    return shares[:-1], shares[-1], numpy.exp(at[rows * len(SHARES) :])


def _strength(rows, names):
    """The matrix of the squares that are minimised with the samples': the sums of the module's docstring but the first."""
    apart = numpy.hstack([numpy.eye(rows - 1), -numpy.ones((rows - 1, 1))])
    between = OF_PRECISION * apart.T @ apart
    between[-1, -1] += OF_DESIGN
    shares = rows * len(SHARES)
    strength = FACTORS * numpy.eye(shares + names)
    strength[:shares, :shares] = numpy.kron(between, numpy.eye(len(SHARES)))
    return strength


def _quadratic(samples, at, expected, strength):
    """(loss, gradient, Gauss and Newton's curvature) there."""
    rows = len(samples.precisions) + 1
    shares, _, factors = _apart(at, rows)
    seconds, derivatives = samples.predicted(shares, factors)
    derivatives = numpy.insert(derivatives, [(rows - 1) * len(SHARES)] * len(SHARES), 0.0, axis=1)  # by the common shares
    slopes, off = derivatives / seconds[:, None], numpy.log(seconds) - samples.logs
    size = numpy.abs(off)
    inside = size <= OUTLIER
    huber = numpy.where(inside, off**2 / 2, OUTLIER * (size - OUTLIER / 2))
    weights = numpy.where(inside, 1, OUTLIER / numpy.maximum(size, OUTLIER))
    from_prior = at - expected
    loss = huber.sum() + from_prior @ strength @ from_prior / 2
    gradient = slopes.T @ (weights * off) + strength @ from_prior
    curvature = slopes.T @ (weights[:, None] * slopes) + strength
    return loss, gradient, curvature
