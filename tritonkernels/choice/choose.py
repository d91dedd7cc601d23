"""The choice among designs and configs: the least predicted time first. Pure functions of problem and target.

The model of time (model.py) names the contenders, all that it predicts to be about as fast as the fastest; what records have
taught of its errors (learned.py) chooses among them.
"""

import functools
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy

from ..analysis import roofline
from ..design import as_dict, no_transform
from ..errors import ConfigError, UnsupportedError
from . import efficiency, learned, model
from .model import Contender

NEAREST = 3  # configs that an error names


class Choice(NamedTuple):
    """A design and its config; `cost` and the seconds of `estimate`, the model's, are corrected by what was learned and at
    least the roofline's (the choice itself is by what they were before); `timed` says whether the records that it stands on
    have the design in this precision, and its config. The last two are None without a GPU, and for a lesson."""

    design: Any
    config: Any
    cost: float
    estimate: model.Estimate | None
    timed: bool | None


def ranking(package, designs, problem, target):
    """The Choices of these designs, all willing: the one that a call gets, then the others, the least predicted time first; of
    equals the later design, without a GPU the simpler one.

    A call gets what was timed, if there is any: the model has only guesses for the rest, and nobody has seen it run. What is
    new is chosen once `perf sweep` has timed it and `perf fit` has learnt from that.

    The emulations are slow, in the number of a kernel's steps, and building many kernels is slower: there only the first config
    of each design counts. Nothing is predicted of a lesson, which comes here alone: it has its configs in their own order.
    """
    if any(design.is_lesson for design in designs):
        return [Choice(design, config, 0.0, None, None) for design in designs for config in design.configs(problem, target)]
    if not target.is_gpu:
        found = [choice for design in designs for choice in _emulated(design, problem, target)]
        return sorted(found, key=lambda choice: choice.cost)
    found, rate = _found(package, designs, problem, target), model.rates(target)
    if not found:
        return []
    contenders = _contenders(problem, target, found)
    predicted = model.predicted(contenders, rate)
    costs = learned.corrected(_trees(package, problem, target), problem, contenders, predicted, rate)
    asked = numpy.array(_asked(found))
    first = asked[learned.fastest(predicted.seconds[asked], costs[asked])]
    costs[asked] = numpy.maximum(costs[asked], costs[first])  # the model's word stands for what it predicts to be far slower
    limits = roofline.limits(problem, rate.target)
    choices = []
    for cost, estimate, (design, config, *_, timed) in zip(costs.tolist(), model.estimates(predicted), found):
        saves = design.transform is not no_transform  # some of the arithmetic
        estimate = estimate.taking(cost, 0.0 if saves else limits["compute_s"] or 0.0, limits["memory_s"])
        choices.append(Choice(design, config, estimate.seconds, estimate, timed))
    return [choices.pop(first), *sorted(choices, key=lambda choice: choice.cost)]


def best(package, designs, problem, target):
    """The (design, config) of ranking's first Choice, None if there is none: in less time, without what has no chance."""
    if not target.is_gpu or any(design.is_lesson for design in designs):
        return next((choice[:2] for choice in ranking(package, designs, problem, target)), None)
    found, rate = _found(package, designs, problem, target), model.rates(target)
    if not found:
        return None
    found = [found[at] for at in _asked(found)]
    contenders = _contenders(problem, target, found)
    predicted = model.predicted(contenders, rate)
    near = learned.near(predicted.seconds)
    costs = learned.corrected(_trees(package, problem, target), problem, contenders, predicted, rate, near)
    return found[near[costs.argmin()]][:2]


def _found(package, designs, problem, target):
    """[(design, config, what the design sustains, factors, whether it was timed)] of all configs, the fast designs first."""
    found, figures = [], efficiency.sustained(target.name)
    for design in designs:
        reduced = design.reduced(problem).as_timed
        sustained, layouts = (
            efficiency.of_design(figures, package, design.key, reduced.precision),
            efficiency.layouts_of(reduced),
        )
        of_problem, after = sustained.of_problem(reduced)
        for config in design.configs(problem, target):
            factor, timed = sustained.of_config(config, layouts)
            found.append((design, config, sustained, (factor * of_problem, after), timed))
    return found[::-1]


def _asked(found):
    """The indices of those that a call may get: of what was timed, or of all if nothing was."""
    return [at for at, (*_, timed) in enumerate(found) if timed] or range(len(found))


def _contenders(problem, target, found):
    return [
        Contender(design.name, config, tuple(design.work(problem, config, target)), sustained, factors)
        for design, config, sustained, factors, _ in found
    ]


def _trees(package, problem, target):
    return learned.trees_of(target.name, package, problem.op)


def _emulated(design, problem, target):
    for config in islice(design.configs(problem, target), 1):
        yield Choice(design, config, sum(map(model.emulated_cost, design.work(problem, config, target))), None, None)


def numbers_of(config):
    """The numbers of a caller's config, as a dict; ConfigError for what is none."""
    if isinstance(config, Mapping) or hasattr(config, "all_kwargs"):
        return as_dict(config)
    raise ConfigError(
        "config", type(config).__name__, "a triton.Config or a dict", "Pass one that configs() of the call lists."
    )


def named_config(design, problem, target, config):
    """The design's config that the caller's stands for, one of them or a dict of some of its numbers; ConfigError if none."""
    numbers = numbers_of(config)
    legal = list(design.configs(problem, target))
    for known in legal:
        if numbers.items() <= as_dict(known).items():
            return known
    if not legal:
        raise UnsupportedError(f"none of {design.name}'s configs fits {target.name}", remedy="Name another design.")
    nearest = sorted(map(as_dict, legal), key=functools.partial(distance, numbers))[:NEAREST]
    lines = "".join(f"\n    {config}" for config in nearest)
    remedy = f"The nearest are:{lines}\nconfigs() of the call lists all."
    raise ConfigError("config", numbers, f"one of the {len(legal)} configs of {design.name}", remedy)


def distance(asked, config):
    """0 where the config has what is asked for. What it has under no name counts as much as two wrong numbers."""
    return sum(_apart(value, config[name]) if name in config else 2 for name, value in asked.items())


def _apart(a, b):
    """From 0 to 1."""
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return abs(a - b) / max(abs(a), abs(b), 1) if numbers else a != b
