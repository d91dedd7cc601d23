"""Samples: times of one design, and the parts that the model of time predicts them from, as arrays."""

from dataclasses import dataclass

import numpy

from tritonkernels.choice import model


@dataclass(frozen=True, eq=False)
class Samples:
    """Of some runs. A run has one or more terms, and a term one or more kernels.

    names    of the factors, without those of all terms: what is common to all is in the shares
    parts    (5, kernels): seconds by PARTS at the GPU's full figures
    term     (kernels,): the kernel's term
    run      (terms,): the term's run
    present  (terms, factors): 1 where the factor applies, else 0
    logs     (runs,): of the measured seconds
    weights  (runs,)
    """

    names: tuple[str, ...]
    parts: numpy.ndarray
    term: numpy.ndarray
    run: numpy.ndarray
    present: numpy.ndarray
    logs: numpy.ndarray
    weights: numpy.ndarray

    @staticmethod
    def of(runs, target):
        """Of [(Terms, seconds, weight)]."""
        rate = model.rates(target)
        named = [set(term.factors) for terms, _, _ in runs for term in terms]
        names = tuple(sorted(set.union(*named) - set.intersection(*named)))
        column = {name: i for i, name in enumerate(names)}
        parts, of_term, of_run, present = [], [], [], []
        for number, (terms, _, _) in enumerate(runs):
            for term in terms:
                parts += [model.parts_of(work, rate) for work in term.works]
                of_term += [len(of_run)] * len(term.works)
                of_run.append(number)
                present.append([column[name] for name in term.factors if name in column])
        applies = numpy.zeros((len(of_run), len(names)))
        for row, columns in enumerate(present):
            applies[row, columns] = 1
        return Samples(
            names,
            numpy.array(parts, float).reshape(-1, len(model.PARTS)).T,
            numpy.array(of_term, int),
            numpy.array(of_run, int),
            applies,
            numpy.log([seconds for _, seconds, _ in runs]),
            numpy.array([weight for _, _, weight in runs], float),
        )

    def predicted(self, shares, factors):
        """(seconds (runs,), their derivatives by the logarithms of shares and factors, (runs, 5 + factors))."""
        scaled = self.parts / shares[:, None]
        seconds = model.joined(scaled)
        longest = seconds - scaled[4]
        powers = scaled[:4] ** model.OVERLAP
        total = powers.sum(axis=0)
        of_parts = -numpy.vstack([powers * (longest / numpy.where(total > 0, total, 1)), scaled[4:]])
        factor = numpy.exp(self.present @ numpy.log(factors))
        by_share = numpy.stack([self._by_term(part) * factor for part in of_parts], axis=1)
        by_term = self._by_term(seconds) * factor
        derivatives = numpy.hstack([by_share, by_term[:, None] * self.present])
        rows = numpy.zeros((len(self.logs), derivatives.shape[1]))
        numpy.add.at(rows, self.run, derivatives)
        return numpy.bincount(self.run, by_term, len(self.logs)), rows

    def _by_term(self, of_kernels):
        return numpy.bincount(self.term, of_kernels, len(self.run))


def without_factors(many):
    """The Samples of several designs as one, to fit what they have in common."""
    terms = numpy.cumsum([0, *(len(s.run) for s in many)])
    runs = numpy.cumsum([0, *(len(s.logs) for s in many)])
    return Samples(
        (),
        numpy.concatenate([s.parts for s in many], axis=1),
        numpy.concatenate([s.term + start for s, start in zip(many, terms)]),
        numpy.concatenate([s.run + start for s, start in zip(many, runs)]),
        numpy.zeros((terms[-1], 0)),
        numpy.concatenate([s.logs for s in many]),
        numpy.concatenate([s.weights for s in many]),
    )
