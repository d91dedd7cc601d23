"""Timed runs as the model of time sees them: with the work of their kernels, and the names of what is fitted for them."""

import functools
import importlib
import itertools
from typing import Any, NamedTuple

from tritonkernels.choice import efficiency, model
from tritonkernels.choice.model import Contender
from tritonkernels.choice.work import Work
from tritonkernels.design import as_dict
from tritonkernels.problem import Problem
from tritonkernels.target import Target

from .timed import Run, Timed

BEFORE = {"SPLIT_K": 1}  # the value of a number that some designs have got since, for what they did before


class Counted(NamedTuple):
    """A run of a shape on a GPU.

    key      of its design and precision in the table of what designs sustain
    problem  the design's own: another operation's, if it is that one's design
    """

    shape: Timed
    package: str
    run: Run
    key: str
    problem: Problem
    config: Any
    works: tuple[Work, ...]
    target: Target

    @property
    def factors(self):
        """The names of the factors of its time."""
        name, layouts = efficiency.config_name(self.config), efficiency.layouts_of(self.problem)
        together = [efficiency.in_layouts(name, layouts)] if layouts else []
        return name, *together, *itertools.chain(*efficiency.classes(self.problem))

    def contender(self, sustained):
        """The run as a Contender; `sustained` is the model's of its key."""
        of_config, _ = sustained.of_config(self.config, efficiency.layouts_of(self.problem))
        of_problem, after = sustained.of_problem(self.problem)
        return Contender(self.run.design, self.config, self.works, sustained, (of_config * of_problem, after))


def predicted(runs, sustained):
    """(their Contenders, what is Predicted) of runs on one GPU; `sustained` is the table of what designs sustain."""
    contenders = [run.contender(efficiency.of_design(sustained, *run.key.split())) for run in runs]
    rate = model.rates(runs[0].target)
    found = model.predicted(contenders, rate)
    for at, run in enumerate(runs):
        if run.run.in_a_row:
            own = contenders[at].sustained
            found.seconds[at] += rate.launch / own.next_launch - rate.launch / own.launch
    return contenders, found


def counted(shapes, target):
    """The Counted runs of shapes that were Timed on a GPU, but those of lessons, of designs that refuse by now and of configs
    that are not legal any more."""
    return [run for shape in shapes for package, runs in shape.runs.items() for run in _counted(shape, package, runs, target)]


def _counted(shape, package, runs, target):
    problem = shape.problem
    designs = {design.name: design for design in library(package).designs(problem.op) if not design.is_lesson}

    @functools.cache
    def configs(name):
        known = name in designs and designs[name].refuses(problem, target) is None
        return list(designs[name].configs(problem, target)) if known else []

    for run in runs:
        alike = run.config, BEFORE | run.config
        config = next((config for config in configs(run.design) if as_dict(config) in alike), None)
        if config is not None:
            design = designs[run.design]
            works = tuple(design.work(problem, config, target))
            reduced = design.reduced(problem).as_timed
            key = efficiency.key_of(package, design.key, reduced.precision)
            yield Counted(shape, package, run, key, reduced, config, works, target)


def library(package):
    return importlib.import_module(f"{package}.launch").LIBRARY
