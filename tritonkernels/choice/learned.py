"""What the model of time gets wrong, learned from records: trees choose among contenders that it predicts to be about as fast.

The model counts work. Where it is wrong by the same factor on problems and configs that are alike, records show it: `python -m
perf fit` fits Trees, a set for each operation and package, to the logarithm of measured over predicted seconds
(perf/fit/boosting.py). A tree asks a few questions of the form "is this figure above that threshold?", the same ones of every
call, and adds to the logarithm the value that the answers lead to (such trees are called oblivious). The figures are those that
the model works with: of the problem, the config, the Work and the predicted parts.

Trees know nothing of what is far from records. So the model's word stands for what it predicts to be slower than the least by
more than the factor NEAR; sweeps have timed what is nearer.
"""

import functools
import json
import math
from dataclasses import dataclass, fields
from itertools import chain
from numbers import Real
from typing import NamedTuple

import numpy

from ..design import as_dict
from . import model
from .work import LINE, Work

FILE = "learned.json"
NEAR = 1.25
DIVIDES = 64  # edges of tiles and, in elements, lines of memory are multiples of it
UNIT = 1e-3  # of the logarithms in the file, which are integers
AS_THEY_ARE = ("registers", "threads", "cluster")  # fields of a Work; of others, which span decades, the logarithm counts


class Contender(NamedTuple):
    """A config that may be chosen, and the model's predicted seconds."""

    seconds: float
    design: str  # its name
    config: object
    works: tuple[Work, ...]
    sustained: model.Sustained


@dataclass(frozen=True, eq=False)
class Trees:
    """names     of the figures that they ask for
    asked      (trees, depth): indices of names, a question each
    thresholds (trees, depth)
    values     (trees, 2^depth): of the answers, read as a binary number with the first one in front
    """

    names: tuple[str, ...]
    asked: numpy.ndarray
    thresholds: numpy.ndarray
    values: numpy.ndarray

    def factors(self, rows):
        """Factors of the predicted times of calls, whose figures are a dict each."""
        figures = numpy.array([[row.get(name, 0.0) for name in self.names] for row in rows])
        answers = figures[:, self.asked] > self.thresholds
        places = answers @ (1 << numpy.arange(self.asked.shape[1])[::-1])
        return numpy.exp(self.values[numpy.arange(len(self.values)), places].sum(axis=1))


def corrected(trees, problem, contenders, rate):
    """The seconds of each Contender, as predicted and corrected by the Trees, if there are any."""
    if trees is None or not contenders:
        return [contender.seconds for contender in contenders]
    common = of_problem(problem)
    factors = trees.factors([common | of_contender(contender, problem, rate) for contender in contenders])
    return [contender.seconds * factor for contender, factor in zip(contenders, factors.tolist())]


def fastest(contenders, seconds):
    """The index of the one with the least corrected seconds, among those that the model predicts to be about as fast."""
    most = NEAR * min(contender.seconds for contender in contenders)
    return min((at for at, contender in enumerate(contenders) if contender.seconds <= most), key=seconds.__getitem__)


def of_problem(problem):
    """{name: figure} of a problem: its sizes, as logarithms and how they divide, how its lines are aligned, and 1 for
    each of its classes."""
    sizes = {f.name: getattr(problem, f.name) for f in fields(problem) if f.type is int}
    sizes |= {"flops": problem.flops, "bytes": problem.bytes}
    return {
        **{name: math.log2(max(1, size)) for name, size in sizes.items()},
        **{f"{name} mod {DIVIDES}": float(size % DIVIDES) for name, size in sizes.items()},
        "out bytes": problem.out_dtype.itemsize,
        **{f"lines of {name}": math.log2(math.gcd(LINE, size)) for name, size in problem.row_bytes.items()},
        **dict.fromkeys(chain(*model.classes(problem)), 1.0),
    }


def of_contender(contender, problem, rate):
    """{name: figure}: its design and config, the Work of its main kernel, also over the problem's, and what each of the model's
    PARTS takes of the time."""
    main = max(contender.works, key=lambda work: work.blocks * (work.flops + work.fetched))
    parts = [part / share for part, share in zip(model.parts_of(main, rate), contender.sustained.shares)]
    numbers = {name: float(value) for name, value in as_dict(contender.config).items() if isinstance(value, Real)}
    counts = {
        name: value if name in AS_THEY_ARE else math.log2(1 + value)
        for name, value in zip(Work._fields, main)
        if isinstance(value, Real)
    }
    waves = main.blocks / rate.sms
    return {
        f"design {contender.design}": 1.0,
        **numbers,
        **counts,
        "computed": math.log2((1 + main.blocks * main.flops) / max(1, problem.flops)),
        "waves": waves,
        "last wave": math.ceil(waves) / waves if waves else 1.0,
        "kernels": len(contender.works),
        "seconds": math.log2(contender.seconds),
        **{part: seconds / contender.seconds for part, seconds in zip(model.PARTS, parts)},
    }


def trees_of(target_name, package, op):
    """The Trees that serve a GPU, None if there are none."""
    return all_of(target_name).get(key_of(package, op))


def key_of(package, op):
    return f"{package} {op}"


def all_of(target_name):
    """{key_of(package, op): Trees} that serve a GPU."""
    return _read(model.TABLES / model.folder(target_name) / FILE)


@functools.cache
def _read(path):
    return {key: _trees(**values) for key, values in json.loads(path.read_text())["trees"].items()} if path.exists() else {}


def _trees(names, trees):
    asked, thresholds, values = map(numpy.array, zip(*trees))
    return Trees(tuple(names), asked, thresholds, UNIT * values)
