"""Samples: times of one design, and the parts that the model of time predicts them from, as arrays."""

from dataclasses import dataclass

import numpy

from tritonkernels.choice import efficiency, model
from tritonkernels.choice.efficiency import SHARES


@dataclass(frozen=True, eq=False)
class Samples:
    """Some runs, as arrays.

    precisions  of the runs, which have shares of their own
    names       of the factors, (name, the precision that it is of, or None if it is of all). Factors of all runs of a precision
                are left out: what is common to them is in the shares. A config's with layouts are of all precisions
    parts       (shares, kernels): seconds at the GPU's full figures, by SHARES
    run         (kernels,): the kernel's run
    precision   (runs,): the index of its precision
    present     (runs, factors): 1 where the factor applies, else 0
    logs        (runs,): of the measured seconds
    """

    precisions: tuple[str, ...]
    names: tuple[tuple[str, str | None], ...]
    parts: numpy.ndarray
    run: numpy.ndarray
    precision: numpy.ndarray
    present: numpy.ndarray
    logs: numpy.ndarray

    @staticmethod
    def of(runs):
        """The Samples of Counted runs."""
        named = [set(run.factors) for run in runs]
        of_runs = [efficiency.alike(run.problem.precision) for run in runs]
        precisions = tuple(sorted(set(of_runs)))
        names = [(name, None) for name in _different(named)]
        if len(precisions) > 1:
            for precision in precisions:
                own = [names for names, other in zip(named, of_runs) if other == precision]
                names += [(name, precision) for name in _different(own) if not efficiency.is_in_layouts(name)]
        return Samples(
            precisions,
            tuple(names),
            numpy.array([parts for run in runs for parts in _parts(run)]).T,
            numpy.repeat(numpy.arange(len(runs)), [len(run.works) for run in runs]),
            numpy.array([precisions.index(precision) for precision in of_runs]),
            numpy.array([[n in own and p in (None, q) for n, p in names] for own, q in zip(named, of_runs)], float),
            numpy.log([run.run.seconds for run in runs]),
        )

    @staticmethod
    def joined(many):
        """The Samples of several designs, without factors and all of one precision, to fit what they have in common."""
        starts = numpy.cumsum([0, *(len(s.logs) for s in many)])
        return Samples(
            ("all",),
            (),
            numpy.concatenate([s.parts for s in many], axis=1),
            numpy.concatenate([s.run + start for s, start in zip(many, starts)]),
            numpy.zeros(starts[-1], int),
            numpy.zeros((starts[-1], 0)),
            numpy.concatenate([s.logs for s in many]),
        )

    def predicted(self, shares, factors):
        """(seconds (runs,), their derivatives by the logarithms of shares and factors, (runs, precisions * SHARES + factors)).
        shares: (precisions, SHARES)."""
        *parts, epilogue, first, further = self.parts / shares[self.precision[self.run]].T
        after = numpy.array([efficiency.is_of_epilogue(name) for name, _ in self.names], bool)
        factor = self._product(factors, ~after)
        epilogue = factor * epilogue * self._product(factors, after)
        powers = numpy.array(parts) ** model.OVERLAP
        overlapped = factor * model.overlapped(*parts)
        each = overlapped / powers.sum(axis=0)
        by_share = [*(power * each for power in powers), epilogue, first, further]
        derivatives = numpy.zeros((len(self.logs), len(self.precisions), len(SHARES)))
        derivatives[numpy.arange(len(self.logs)), self.precision] = -numpy.stack(list(map(self._by_run, by_share)), axis=1)
        scaled, of_epilogue = self._by_run(overlapped + epilogue), self._by_run(epilogue)
        seconds = scaled + self._by_run(first + further)
        by_factor = numpy.where(after, of_epilogue[:, None], scaled[:, None]) * self.present
        return seconds, numpy.hstack([derivatives.reshape(len(self.logs), -1), by_factor])

    def _product(self, factors, wanted):
        """Each kernel's product of the wanted factors."""
        return numpy.exp(self.present[:, wanted] @ numpy.log(factors[wanted]))[self.run]

    def _by_run(self, of_kernels):
        return numpy.bincount(self.run, of_kernels, len(self.logs))


def _different(named):
    """The names that some of these sets have and others do not."""
    return sorted(set.union(*named) - set.intersection(*named))


def _parts(run):
    """The parts of each of its kernels, by SHARES, on its GPU."""
    for at, (*parts, launch) in enumerate(model.parts_of(run.works, model.rates(run.target)).T):
        yield (*parts, 0.0, launch) if at or run.run.in_a_row else (*parts, launch, 0.0)
