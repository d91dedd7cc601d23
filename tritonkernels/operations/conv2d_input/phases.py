"""The gradient with respect to the input as convolutions: of grad_output, with the flipped filter, one per phase.

Input h contributes to output p through tap r where p * stride = h + padding - r * dilation. The inputs of one phase are
h = first + a * stride. Only every (stride / gcd(stride, dilation))-th tap reaches them, and from one of these taps to the next
p goes back by dilation / gcd. From the last tap to the first, p goes forward: so each phase is a convolution of stride 1 whose
results are every stride-th row. A stride of 1 is a single phase. What no tap reaches is zeros.
"""

import dataclasses
import functools
import itertools
import math
from dataclasses import dataclass

from ...problem import Conv2dProblem
from ..conv2d.taps import Taps

WHOLE = slice(None)
FIELDS = tuple(field.name for field in dataclasses.fields(Conv2dProblem))


@dataclass(frozen=True)
class Phase:
    """A convolution that yields a part of the gradient."""

    problem: Conv2dProblem
    taps: tuple[slice, slice]  # of the flipped filter
    results: tuple[slice, slice]  # of the gradient's rows and columns

    def operands(self, grad_output, filters, bias, out):
        """What conv2d's designs take: input, weight, bias, result."""
        if not self.problem.c:  # nothing is read
            return out[:, :0], filters[(WHOLE, slice(0), *self.taps)], bias, out
        return grad_output, filters[(WHOLE, WHOLE, *self.taps)], bias, self.results_of(out)

    def results_of(self, out):
        return out[(WHOLE, WHOLE, *self.results)]

    def backwards(self, problem):
        """Where its taps are in a filter that is not flipped: number 0 is the flipped one's last."""
        rows, columns = self.taps
        first = rows.start * problem.s + columns.start
        return Taps(problem.r * problem.s - 1 - first, -(rows.step or 1) * problem.s, -(columns.step or 1))


@dataclass(frozen=True)
class _Axis:
    """One axis of a phase."""

    size: int  # results
    taps: int
    spacing: int  # between taps, in outputs
    padding: int
    of_filter: slice
    of_result: slice


def _axis_phases(size, taps, stride, padding, dilation):
    """The _Axis of each phase that some tap reaches."""
    common = math.gcd(stride, dilation)
    every = stride // common
    for first in range(min(stride, size)):
        reached = [r for r in range(taps) if (first + padding - r * dilation) % stride == 0]
        if reached:
            yield _Axis(
                size=len(range(first, size, stride)),
                taps=len(reached),
                spacing=dilation // common,
                padding=(reached[-1] * dilation - first - padding) // stride,  # before the output that the last tap reads
                of_filter=slice(taps - 1 - reached[-1], None, every),
                of_result=slice(first, None, stride),
            )


@functools.lru_cache(1024)
def phases(problem):
    """The Phases of a Conv2dInputProblem, in order; if no tap reaches any, one of zeros, or of the bias."""
    found = tuple(_phase(problem, *axes) for axes in itertools.product(*_reached(problem)))
    return found or (_zeros(problem),)


@functools.lru_cache(1024)
def are_phases_missing(problem):
    """Whether some phase, but not every one, is reached by no tap: all is filled with zeros, or the bias, before the others."""
    rows, columns = _reached(problem)
    every = min(problem.stride[0], problem.h) * min(problem.stride[1], problem.w)
    return 0 < len(rows) * len(columns) < every


def _reached(problem):
    """The phases of rows, and of columns, that some tap reaches."""
    sizes = zip((problem.h, problem.w), (problem.r, problem.s), problem.stride, problem.padding, problem.dilation)
    return [list(_axis_phases(*axis)) for axis in sizes]


def _phase(problem, row, column):
    return Phase(
        _convolution(
            problem,
            **{"c": problem.k, "h": problem.p, "w": problem.q, "r": row.taps, "s": column.taps},
            **{"p": row.size, "q": column.size},
            padding=(row.padding, column.padding),
            dilation=(row.spacing, column.spacing),
        ),
        (row.of_filter, column.of_filter),
        (row.of_result, column.of_result),
    )


def _zeros(problem):
    """A convolution of no channels."""
    sizes = {"c": 0, "h": problem.h, "w": problem.w, "r": 1, "s": 1, "p": problem.h, "q": problem.w}
    one = slice(0, 1)
    return Phase(_convolution(problem, **sizes, padding=(0, 0), dilation=(1, 1)), (one, one), (WHOLE, WHOLE))


def _convolution(problem, **changes):
    given = {name: getattr(problem, name) for name in FIELDS}
    return Conv2dProblem(**given | {"k": problem.c, "stride": (1, 1)} | changes)
