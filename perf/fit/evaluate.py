"""How good a choice is: its time over the best measured time, on shapes that nothing was fitted to."""

import itertools
import statistics
from typing import NamedTuple

from tritonkernels.choice import model

from .counted import Counted

FINE, GATE_MEAN, GATE_SHARE = 1.25, 1.03, 0.99  # the gates: this mean at most, and this share of cases at most FINE


class Outcome(NamedTuple):
    """Of one shape and package: what the model chooses among the measured runs, and which is the fastest."""

    chosen: Counted
    best: Counted
    chosen_s: float  # as predicted
    best_s: float

    @property
    def lost(self):
        return self.chosen.run.seconds / self.best.run.seconds

    @property
    def against_torch(self):
        """torch's time over the chosen one's; None where torch was not timed."""
        torch = self.chosen.shape.torch
        return torch / self.chosen.run.seconds if torch else None


def outcomes(runs, sustained):
    """The Outcome of each shape and package of Counted runs, which are in the order of `counted`."""
    found = []
    for _, own in itertools.groupby(runs, key=lambda run: (id(run.shape), run.package)):
        predicted = [(run.predicted(model.of_design(sustained, *run.key.split())), run) for run in own]
        chosen = min(predicted, key=lambda pair: pair[0])
        best = min(predicted, key=lambda pair: pair[1].run.seconds)
        found.append(Outcome(chosen[1], best[1], chosen[0], best[0]))
    return found


class Summary(NamedTuple):
    shapes: int
    mean: float  # geometric, of chosen over best
    p95: float
    p99: float
    fine: float  # share at most FINE
    worst: float
    torch: float | None  # geometric mean of torch's time over the chosen one's
    ahead: float | None  # share at or above torch

    @property
    def passes(self):
        return self.mean <= GATE_MEAN and self.fine >= GATE_SHARE


def summary(outcomes):
    lost = sorted(outcome.lost for outcome in outcomes)
    against = [ratio for outcome in outcomes if (ratio := outcome.against_torch)]
    return Summary(
        len(lost),
        statistics.geometric_mean(lost),
        _percentile(lost, 95),
        _percentile(lost, 99),
        sum(x <= FINE for x in lost) / len(lost),
        lost[-1],
        statistics.geometric_mean(against) if against else None,
        sum(x >= 1 for x in against) / len(against) if against else None,
    )


def _percentile(ordered, percent):
    """The least value that so many percent do not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
