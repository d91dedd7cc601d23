"""How good a choice is: its time over the best measured time, on shapes that nothing was fitted to."""

import itertools
import statistics
from typing import NamedTuple

from tritonkernels.choice import learned, model

from .counted import Counted, predicted

FINE, GATE_MEAN, GATE_SHARE = 1.25, 1.03, 0.99  # the gates: this mean at most, and this share of cases at most FINE


class Outcome(NamedTuple):
    """What the model chooses among the measured runs of a shape and package, and the fastest of them."""

    chosen: Counted
    best: Counted
    chosen_s: float  # as predicted
    best_s: float

    @property
    def lost(self):
        return self.chosen.run.seconds / self.best.run.seconds


def outcomes(runs, sustained, trees):
    """The Outcome of each shape and package of Counted runs, which are in the order of `counted`; `trees` by package and op."""
    found = []
    for (_, package), group in itertools.groupby(runs, key=lambda run: (id(run.shape), run.package)):
        own = list(group)
        problem, rate = own[0].shape.problem, model.rates(own[0].target)
        contenders, times = predicted(own, sustained)
        costs = learned.corrected(trees.get((package, problem.op)), problem, contenders, times, rate)
        chosen, best = learned.fastest(times.seconds, costs), min(range(len(own)), key=lambda at: own[at].run.seconds)
        found.append(Outcome(own[chosen], own[best], costs[chosen], costs[best]))
    return found


class Summary(NamedTuple):
    shapes: int
    mean: float  # geometric, of chosen over best
    p95: float
    p99: float
    fine: float  # share at most FINE
    worst: float

    @property
    def passes(self):
        return self.mean <= GATE_MEAN and self.fine >= GATE_SHARE


def summary(outcomes):
    lost = sorted(outcome.lost for outcome in outcomes)
    return Summary(
        len(lost),
        statistics.geometric_mean(lost),
        _percentile(lost, 95),
        _percentile(lost, 99),
        sum(x <= FINE for x in lost) / len(lost),
        lost[-1],
    )


def _percentile(ordered, percent):
    """The least value that so many percent do not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
