"""The choice among designs and configs: the least predicted time first. Pure functions of problem and target."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from ..design import as_dict
from ..errors import ConfigError, UnsupportedError
from . import model


class Choice(NamedTuple):
    """A design and its config; `estimate` is the model's, None without a GPU."""

    design: Any
    config: Any
    cost: float
    estimate: model.Estimate | None


def ranking(package, designs, problem, target):
    """The Choices of these designs, all willing, the least predicted time first; of equals the later design, without a GPU the
    simpler one.

    The emulations are slow, in the number of a kernel's steps, and building many kernels is slower: there only the first config
    of each design counts.
    """
    if not target.is_gpu:
        found = [choice for design in designs for choice in _emulated(design, problem, target)]
    else:
        figures, rate = model.sustained(target.name), model.rates(target)
        found = [choice for design in designs for choice in _estimated(design, problem, rate, figures, package)]
    return sorted(reversed(found) if target.is_gpu else found, key=lambda choice: choice.cost)


def _estimated(design, problem, rate, figures, package):
    reduced = design.reduced(problem)
    sustained = model.of_design(figures, package, design.key, reduced.precision)
    of_problem = sustained.of_problem(reduced)
    for config in design.configs(problem, rate.target):
        works, factor = design.work(problem, config, rate.target), of_problem * sustained.of_config(config)
        estimate = model.estimate(works, rate, sustained, factor)
        yield Choice(design, config, estimate.seconds, estimate)


def _emulated(design, problem, target):
    for config in islice(design.configs(problem, target), 1):
        yield Choice(design, config, sum(map(model.emulated_cost, design.work(problem, config, target))), None)


def numbers_of(config):
    """The numbers of a caller's config, as a dict; ConfigError for what is none."""
    if isinstance(config, Mapping) or hasattr(config, "all_kwargs"):
        return as_dict(config)
    raise ConfigError("config", type(config).__name__, "a triton.Config or a dict as in explain()")


def named_config(design, problem, target, config):
    """The design's config that the caller's stands for, one of them or a dict of some of its numbers; ConfigError if none."""
    numbers = numbers_of(config)
    legal = list(design.configs(problem, target))
    for known in legal:
        if numbers.items() <= as_dict(known).items():
            return known
    if not legal:
        raise UnsupportedError(f"none of {design.name}'s configs fits {target.name}")
    raise ConfigError("config", numbers, " | ".join(str(as_dict(c)) for c in legal))
