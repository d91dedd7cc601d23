"""Samples: times of one design, and the parts that the model of time predicts them from, as arrays."""

from dataclasses import dataclass

import numpy

from tritonkernels.choice import model


@dataclass(frozen=True, eq=False)
class Samples:
    """Of some runs.

    names    of the factors, without those of all runs: what is common to all is in the shares
    parts    (parts, kernels): seconds by PARTS at the GPU's full figures
    run      (kernels,): the kernel's run
    present  (runs, factors): 1 where the factor applies, else 0
    logs     (runs,): of the measured seconds
    """

    names: tuple[str, ...]
    parts: numpy.ndarray
    run: numpy.ndarray
    present: numpy.ndarray
    logs: numpy.ndarray

    @staticmethod
    def of(runs, rate):
        """Of Counted runs on a GPU of these Rates."""
        named = [set(run.factors) for run in runs]
        names = tuple(sorted(set.union(*named) - set.intersection(*named)))
        return Samples(
            names,
            numpy.array([model.parts_of(work, rate) for run in runs for work in run.works]).T,
            numpy.repeat(numpy.arange(len(runs)), [len(run.works) for run in runs]),
            numpy.array([[name in own for name in names] for own in named], float),
            numpy.log([run.run.seconds for run in runs]),
        )

    @staticmethod
    def joined(many):
        """Of several designs, without factors, to fit what they have in common."""
        starts = numpy.cumsum([0, *(len(s.logs) for s in many)])
        return Samples(
            (),
            numpy.concatenate([s.parts for s in many], axis=1),
            numpy.concatenate([s.run + start for s, start in zip(many, starts)]),
            numpy.zeros((starts[-1], 0)),
            numpy.concatenate([s.logs for s in many]),
        )

    def predicted(self, shares, factors):
        """(seconds (runs,), their derivatives by the logarithms of shares and factors, (runs, parts + factors))."""
        *parts, launches = self.parts / shares[:, None]
        factor = numpy.exp(self.present @ numpy.log(factors))
        powers = numpy.array(parts) ** model.OVERLAP
        each = factor[self.run] * model.overlapped(*parts) / powers.sum(axis=0)
        by_part = [self._by_run(power * each) for power in powers]
        launch, overlapped = self._by_run(launches), sum(by_part)
        by_share = -numpy.stack([*by_part, launch], axis=1)
        return overlapped + launch, numpy.hstack([by_share, overlapped[:, None] * self.present])

    def _by_run(self, of_kernels):
        return numpy.bincount(self.run, of_kernels, len(self.logs))
