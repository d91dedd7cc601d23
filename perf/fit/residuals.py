"""The table of what the model of time gets wrong: Trees for each operation and package, as JSON that the choice reads."""

import math

from tritonkernels.choice import learned, model

from .boosting import boosted
from .table import line

SCHEMA = 1
FEWEST = 100  # shapes drawn at random, of an operation in a package, that teach enough of others: 40 of conv2d did not


def fitted(runs, sustained):
    """{learned.key_of(package, op): Trees} from Counted runs, and the table of what designs sustain."""
    found = {}
    for key, own in sorted(_grouped(runs).items()):
        if len({run.shape.key for run in own if run.shape.judges}) >= FEWEST:
            samples = [_sample(run, model.of_design(sustained, *run.key.split())) for run in own]
            found[key] = boosted(*zip(*samples), *_among(own))
    return found


def _grouped(runs):
    groups = {}
    for run in runs:
        groups.setdefault(learned.key_of(run.package, run.shape.problem.op), []).append(run)
    return groups


def _sample(run, sustained):
    """(its figures, the logarithm of measured over predicted seconds)."""
    contender = run.contender(sustained)
    problem = run.shape.problem
    figures = learned.of_problem(problem) | learned.of_contender(contender, problem, model.rates(run.target))
    return figures, math.log(run.run.seconds / contender.seconds)


def _among(runs):
    """(the number of each run's shape, from 0; the time of the shape's fastest run over its own)"""
    numbers, fastest = {}, {}
    for run in runs:
        shape = id(run.shape)
        numbers.setdefault(shape, len(numbers))
        fastest[shape] = min(fastest.get(shape, math.inf), run.run.seconds)
    return [numbers[id(run.shape)] for run in runs], [fastest[id(run.shape)] / run.run.seconds for run in runs]


def text(trees):
    """The file: a line for each tree."""
    parts = ",\n".join(f"{line(key)}:{_part(own)}" for key, own in trees.items())
    return f'{{"schema":{SCHEMA},\n"trees":{{\n{parts}\n}}}}\n'


def _part(trees):
    values = (trees.values / learned.UNIT).round().astype(int)
    rows = map(line, zip(*[array.tolist() for array in (trees.asked, trees.thresholds, values)]))
    return f'{{"names":{line(trees.names)},\n"trees":[\n' + ",\n".join(rows) + "]}"


def path(gpu):
    return model.TABLES / gpu / learned.FILE
