"""Robust least squares on the logarithm of time: shares and factors that predict Samples best (Levenberg and Marquardt's way).

Minimised is

    sum of huber(log predicted - log measured)
    + SHARES / 2 * |log share - log of its prior|^2 + FACTORS / 2 * |log factor|^2

over shares within bounds. Huber's function is half the square up to OUTLIER and grows linearly beyond, so that a wrong time
moves little. The last two sums stand for so many records that say that the design is as its operation's others, and a factor 1:
few records change little.
"""

import numpy

from tritonkernels.choice.model import PARTS

OUTLIER = 0.2  # of log time
SHARES, FACTORS = 0.5, 2.0
BOUNDS = {part: (1e-3, 1.5) for part in PARTS} | {"compute": (1e-3, 1.0), "memory": (1e-3, 1.0), "launch": (0.3, 3.0)}
STEPS, ENOUGH = 300, 1e-12  # at most, and the relative gain at which they end

_LEAST, _MOST = numpy.log(numpy.array([BOUNDS[part] for part in PARTS])).T


def fit(samples, prior):
    """(shares, factors) of Samples, from the shares expected before."""
    ends = numpy.full(len(samples.names), 5.0)
    least, most = numpy.concatenate([_LEAST, -ends]), numpy.concatenate([_MOST, ends])
    expected = numpy.concatenate([numpy.log(prior), numpy.zeros(len(samples.names))])
    strength = numpy.concatenate([numpy.full(len(PARTS), SHARES), numpy.full(len(samples.names), FACTORS)])
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
    values = numpy.exp(at)
    return values[: len(PARTS)], values[len(PARTS) :]


def _quadratic(samples, at, expected, strength):
    """(loss, gradient, Gauss and Newton's curvature) there."""
    values = numpy.exp(at)
    seconds, derivatives = samples.predicted(values[: len(PARTS)], values[len(PARTS) :])
    slopes, off = derivatives / seconds[:, None], numpy.log(seconds) - samples.logs
    size = numpy.abs(off)
    inside = size <= OUTLIER
    huber = numpy.where(inside, off**2 / 2, OUTLIER * (size - OUTLIER / 2))
    weights = numpy.where(inside, 1, OUTLIER / numpy.maximum(size, OUTLIER))
    from_prior = at - expected
    loss = huber.sum() + strength @ from_prior**2 / 2
    gradient = slopes.T @ (weights * off) + strength * from_prior
    curvature = slopes.T @ (weights[:, None] * slopes) + numpy.diag(strength)
    return loss, gradient, curvature
