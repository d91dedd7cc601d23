"""Gradient boosting of oblivious trees: what is left of the logarithm of time by the model, from figures of calls.

A choice is among runs of one shape. So each tree is fitted to how these differ in what the trees before it leave: from their
mean, in which a run counts as much as it is fast, at most OUTLIER of each (the gradient of Huber's function, as in
least_squares.py). LEVEL of the mean counts too, or else trees would not know how long a call takes. A tree sees a random
half of the shapes, and a random half of the questions. Level by level it takes the question that lessens the squares most, with
PRIOR runs in each leaf that say 0; RATE of what a leaf says counts. (Friedman 2001 and 2002; oblivious trees: Kohavi 1994,
Prokhorenkova and others 2018.)

Residuals are rounded to a grid on which sums are exact in any order, so trees do not depend on how a machine's BLAS adds.
"""

from typing import NamedTuple

import numpy

from tritonkernels.choice.learned import UNIT, Trees

OUTLIER = 0.2  # of log time
# Of those tried what chose best in cross-validation on the half to fit to; but LEVEL 0 chose as well, and predicted times worse
TREES, DEPTH, RATE, PRIOR, LEVEL = 600, 6, 0.15, 5.0, 0.1
THRESHOLDS = 32  # of a figure at most
SHARE = 0.5  # of shapes, and of questions, that a tree sees
GRID = 2.0**-12  # sums of 18,000 runs are exact in single precision


class Questions(NamedTuple):
    """figure: (questions,) its index; threshold: (questions,); answers: (runs, questions), 1.0 where the figure is above it."""

    figure: numpy.ndarray
    threshold: numpy.ndarray
    answers: numpy.ndarray


def boosted(rows, logs, shapes, weights, trees=TREES):
    """The Trees for calls with these figures, a dict each, whose predicted times are too small by these logarithms. `shapes`
    are numbers from 0, the same for calls that are chosen among; `weights` say how much a call counts there."""
    shapes, weights = numpy.asarray(shapes), numpy.asarray(weights)
    names = sorted({name for row in rows for name in row})
    figures = numpy.array([[row.get(name, 0.0) for name in names] for row in rows])
    questions, random, left = _questions(figures), numpy.random.default_rng(0), numpy.array(logs)
    grown = []
    for _ in range(trees):
        residuals = _residuals(left, shapes, weights)
        seen = (random.random(shapes.max() + 1) < SHARE)[shapes]
        offered = numpy.flatnonzero(random.random(len(questions.figure)) < SHARE)
        asked = offered[_asked(questions.answers[numpy.ix_(seen, offered)], residuals[seen])]
        leaves = (questions.answers[:, asked] @ (1 << numpy.arange(DEPTH)[::-1])).astype(int)
        values = numpy.round(RATE * _means(leaves[seen], residuals[seen], 1 << DEPTH) / UNIT)
        left -= UNIT * values[leaves]
        grown.append((asked, values))
    asked, values = map(numpy.array, zip(*grown))
    return _without_unasked(numpy.array(names), questions, asked.T, values)


def _residuals(left, shapes, weights):
    """What counts of what is left."""
    means = (numpy.bincount(shapes, weights * left) / numpy.bincount(shapes, weights))[shapes]
    apart, common = (numpy.clip(part, -OUTLIER, OUTLIER) for part in (left - means, means))
    return (numpy.round((weights * apart + LEVEL * common) / GRID) * GRID).astype(numpy.float32)


def _questions(figures):
    """Questions that have both answers, each once: thresholds between a figure's values, if these are few, or its quantiles."""
    found = {}
    for at, column in enumerate(figures.T):
        values = numpy.unique(column)
        between = (values[1:] + values[:-1]) / 2
        if len(between) > THRESHOLDS:
            least = numpy.quantile(column, numpy.arange(1, THRESHOLDS + 1) / (THRESHOLDS + 1), method="lower")
            between = between[numpy.unique(numpy.searchsorted(values, least[least < values[-1]]))]
        for threshold in (float(f"{exact:.6g}") for exact in between):
            answers = column > threshold
            if answers.any() and not answers.all():
                found.setdefault(answers.tobytes(), (at, threshold, answers))
    figure, threshold, answers = zip(*found.values())
    return Questions(numpy.array(figure), numpy.array(threshold), numpy.array(answers, numpy.float32).T)


def _asked(answers, residuals):
    """The indices of DEPTH questions, the best one for each level."""
    chosen, leaves = [], numpy.zeros(len(residuals), int)
    for depth in range(DEPTH):
        members = (leaves == numpy.arange(1 << depth)[:, None]).astype(numpy.float32)
        counts, sums = members.sum(axis=1, keepdims=True), members @ residuals[:, None]
        above, sums_above = members @ answers, (members * residuals) @ answers
        gains = sums_above**2 / (above + PRIOR) + (sums - sums_above) ** 2 / (counts - above + PRIOR)
        chosen.append(int(gains.sum(axis=0).argmax()))
        leaves = 2 * leaves + answers[:, chosen[-1]].astype(int)
    return chosen


def _means(leaves, residuals, number):
    return numpy.bincount(leaves, residuals, number) / (numpy.bincount(leaves, minlength=number) + PRIOR)


def _without_unasked(names, questions, asked, values):
    """The Trees, with only the questions that they ask and the names of their figures. The values are at most RATE * OUTLIER *
    (1 + LEVEL), 33 UNITs."""
    of_questions, asked = numpy.unique(asked, return_inverse=True)
    of_names, figure = numpy.unique(questions.figure[of_questions], return_inverse=True)
    asked = asked.reshape(DEPTH, -1).astype(numpy.uint16)
    threshold = questions.threshold[of_questions]
    return Trees(names[of_names], figure.astype(numpy.uint16), threshold, asked, values.astype(numpy.int8))
