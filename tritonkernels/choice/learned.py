"""What the model of time gets wrong, learned from records: trees choose among contenders that it predicts to be about as fast.

The model counts work. Where it is wrong by the same factor on problems and configs that are alike, records show it: `python -m
perf fit` fits Trees, a set for each operation and package, to the logarithm of measured over predicted seconds
(perf/fit/boosting.py). A tree asks a few questions of the form "is this figure above that threshold?", the same ones of every
call, and adds to the logarithm the value that the answers lead to (such trees are called oblivious). The figures are those that
the model works with: of the problem, the config, the Work and the predicted parts. They are arrays, of all contenders at once.

Trees know nothing of what is far from records. So the model's word stands for what it predicts to be slower than the least by
more than the factor NEAR; sweeps have timed what is nearer.
"""

import functools
import math
from dataclasses import dataclass, fields, replace
from itertools import chain
from numbers import Real

import numpy

from ..design import as_dict
from . import efficiency
from .model import COUNTS
from .work import KNOWN, LINE

NEAR = 1.25
DIVIDES = 64  # edges of tiles and, in elements, lines of memory are multiples of it
UNIT = 1e-3  # of the logarithms that trees add, which are integers
AS_THEY_ARE = ("registers", "threads", "cluster")  # fields of a Work; of others, which span decades, the logarithm counts


@dataclass(frozen=True, eq=False)
class Trees:
    """names     of the figures that they ask for
    figure     (questions,): the index of its name
    threshold  (questions,)
    asked      (depth, trees): indices of questions
    values     (trees, 2^depth): of the answers, read as a binary number with the first one in front; in UNITs
    """

    names: numpy.ndarray
    figure: numpy.ndarray
    threshold: numpy.ndarray
    asked: numpy.ndarray
    values: numpy.ndarray

    def factors(self, figures, number):
        """The factors of the predicted times of so many calls with these figures, {name: a number of all, or an array}."""
        table = numpy.zeros((len(self.names), number))
        for at, name in enumerate(self.names.tolist()):
            if name in figures:
                table[at] = figures[name]
        answers = (table.take(self.figure, axis=0) > self.threshold[:, None]).view(numpy.uint8)
        digits = 2 ** numpy.arange(len(self.asked), dtype=numpy.uint8)[::-1]
        leaves = numpy.einsum("dtc,d->tc", answers.take(self.asked, axis=0), digits)
        firsts = numpy.arange(0, self.values.size, self.values.shape[1])[:, None]
        logs = numpy.ones(len(self.values), numpy.float32) @ self.values.take(firsts + leaves)  # of whole numbers: exact
        return numpy.exp(UNIT * logs.astype(float))


def corrected(trees, problem, contenders, predicted, rate, among=None):
    """The Predicted seconds of the contenders, or of those `among` them, indices, corrected by the Trees, if there are any."""
    among = range(len(contenders)) if among is None else among
    seconds = predicted.seconds[among]
    if trees is None:
        return seconds
    return seconds * trees.factors(figures(problem, contenders, predicted, rate, among), len(among))


def near(seconds):
    """The indices of what the model predicts to be about as fast as the fastest."""
    return numpy.flatnonzero(seconds <= NEAR * seconds.min())


def fastest(seconds, costs):
    """The index of the least corrected seconds, `costs`, among what is predicted to be about as fast as the fastest."""
    among = near(seconds)
    return among[costs[among].argmin()]


def figures(problem, contenders, predicted, rate, among):
    """{name: a figure of the problem, or an array of figures of the contenders `among` all, indices}."""
    contenders = [contenders[at] for at in among]
    starts, seconds = predicted.first[among].tolist(), predicted.seconds[among]
    mains = [start + own.main() for start, own in zip(starts, contenders)]
    shares = numpy.array([contender.sustained.shares[: len(efficiency.PARTS)] for contender in contenders]).T
    counts = predicted.counts[:, mains]
    blocks, flops = counts[COUNTS.index("blocks")], counts[COUNTS.index("flops")]
    waves = blocks / rate.sms
    logs = numpy.log2([(1 + blocks * flops) / max(1, problem.flops), seconds])
    return {
        **_of_problem(problem.as_timed),
        **_of_configs(contenders),
        **dict(zip(COUNTS, numpy.where(_IN_LOGARITHMS, numpy.log2(1 + counts), counts))),
        "computed": logs[0],
        "waves": waves,
        "last wave": numpy.divide(numpy.ceil(waves), waves, out=numpy.ones_like(waves), where=waves > 0),
        "kernels": numpy.array([len(contender.works) for contender in contenders], float),
        "seconds": logs[1],
        **dict(zip(efficiency.PARTS, predicted.full[:, mains] / shares / seconds)),
    }


_IN_LOGARITHMS = numpy.array([[name not in AS_THEY_ARE] for name in COUNTS])


def _of_problem(problem):
    """{name: figure} of a problem: its sizes, as logarithms and how they divide, how its lines are aligned, and 1 for
    each of its classes."""
    sizes = {f.name: getattr(problem, f.name) for f in fields(problem) if f.type is int}
    sizes |= {"flops": problem.flops, "bytes": problem.bytes}
    return {
        **{name: math.log2(max(1, size)) for name, size in sizes.items()},
        **{f"{name} mod {DIVIDES}": float(size % DIVIDES) for name, size in sizes.items()},
        "out bytes": problem.out_dtype.itemsize,
        **{f"lines of {name}": math.log2(math.gcd(LINE, size)) for name, size in problem.row_bytes.items()},
        **dict.fromkeys(chain(*efficiency.classes(problem)), 1.0),
    }


def _of_configs(contenders):
    """{name: its figures}, 0 of a contender without it: the numbers of configs, and 1 for each one's design."""
    rows = [_numbers(contender.config, contender.design) for contender in contenders]
    return {name: [row.get(name, 0.0) for row in rows] for name in dict.fromkeys(chain.from_iterable(rows))}


@functools.lru_cache(KNOWN)
def _numbers(config, design):
    """{name: figure} of a config of a design."""
    return {name: float(value) for name, value in as_dict(config).items() if isinstance(value, Real)} | {
        f"design {design}": 1.0
    }


@functools.cache
def trees_of(target_name, package, op):
    """The Trees that serve a GPU, None if there are none."""
    return _read(path_of(efficiency.folder(target_name), package, op))


@functools.cache
def _read(path):
    if not path.exists():
        return None
    with numpy.load(path, allow_pickle=False) as arrays:
        found = Trees(*(arrays[field.name] for field in fields(Trees)))
    wide = {"figure": int, "asked": int, "values": numpy.float32}  # as `factors` needs them: they are kept in few bytes
    return replace(found, **{name: getattr(found, name).astype(kind) for name, kind in wide.items()})


def path_of(gpu, package, op):
    """The file of the Trees, arrays by the names of their fields."""
    return efficiency.TABLES / gpu / "learned" / f"{package}.{op}.npz"
