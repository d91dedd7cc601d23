"""The tables of what the model of time gets wrong: Trees for each operation and package, as arrays that the choice reads."""

import io
import itertools
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy

from tritonkernels.choice import learned, model

from .boosting import boosted
from .counted import predicted

FEWEST = 100  # shapes drawn at random, of an operation in a package, that teach enough of others: 40 of conv2d did not


def fitted(runs, sustained):
    """{(package, operation): Trees} from Counted runs, and the table of what designs sustain: a process for each core."""
    groups = {key: own for key, own in sorted(_grouped(runs).items()) if _teaches(own)}
    largest = sorted(groups, key=lambda key: -len(groups[key]))  # these first, so that all cores end at about the same time
    fork = multiprocessing.get_context("fork")  # a child has the runs already: to send them takes as long as to fit some
    with ProcessPoolExecutor(
        mp_context=fork, initializer=_given.update, initargs=({"groups": groups, "to": sustained},)
    ) as pool:
        found = dict(zip(largest, pool.map(_boosted, largest)))
    return {key: found[key] for key in groups}


_given = {}  # in a child of `fitted`: the runs of all groups, and what designs sustain


def _teaches(runs):
    return len({run.shape.key for run in runs if run.shape.judges}) >= FEWEST


def _boosted(key):
    runs, sustained = _given["groups"][key], _given["to"]
    samples = [sample for _, of_shape in itertools.groupby(runs, _of_shape) for sample in _samples([*of_shape], sustained)]
    return boosted(*zip(*samples), *_among(runs))


def _grouped(runs):
    groups = {}
    for run in runs:
        groups.setdefault((run.package, run.shape.problem.op), []).append(run)
    return groups


def _of_shape(run):
    return id(run.shape)


def _samples(runs, sustained):
    """(its figures, the logarithm of measured over predicted seconds) of each of a shape's runs."""
    contenders, found = predicted(runs, sustained)
    figures = learned.figures(runs[0].shape.problem, contenders, found, model.rates(runs[0].target), range(len(runs)))
    columns = [numpy.broadcast_to(values, len(runs)).tolist() for values in figures.values()]
    for run, predicted_s, *row in zip(runs, found.seconds.tolist(), *columns):
        yield dict(zip(figures, row)), math.log(run.run.seconds / predicted_s)


def _among(runs):
    """(the number of each run's shape, from 0; the time of the shape's fastest run over its own)"""
    numbers, fastest = {}, {}
    for run in runs:
        shape = id(run.shape)
        numbers.setdefault(shape, len(numbers))
        fastest[shape] = min(fastest.get(shape, math.inf), run.run.seconds)
    return [numbers[id(run.shape)] for run in runs], [fastest[id(run.shape)] / run.run.seconds for run in runs]


def content(trees):
    """The file of some Trees, the same for the same ones."""
    file = io.BytesIO()
    numpy.savez(file, **vars(trees))
    return file.getvalue()
