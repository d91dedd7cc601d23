"""What the model of time is asked for a config: the kernels of the design that really runs, and what is fitted for it.

A design that an operation has by a reduction is the other operation's design on the reduced problems, and shares its figures.
"""

import importlib
from typing import NamedTuple

from tritonkernels.choice import model
from tritonkernels.choice.work import Work
from tritonkernels.design import as_dict
from tritonkernels.problem import Problem


class Term(NamedTuple):
    """`key` names the design in the table of what designs sustain; `factors` the factors of its config and its problem."""

    key: str
    factors: tuple[str, ...]
    works: tuple[Work, ...]

    def seconds(self, target, sustained):
        factor = 1.0
        for name in self.factors:
            factor *= sustained.factors.get(name, 1.0)
        return model.estimate(self.works, model.rates(target), sustained, factor).seconds


def terms(library, problem, design, config, target):
    """The Terms of a call with the design of that name and the config of those numbers; none if these are not legal here, or if
    the design counts no work."""
    found = []
    for own, reduced in _own(library, problem, design):
        legal = next((c for c in own.configs(reduced, target) if as_dict(c) == config), None)
        if own.work is None or legal is None or own.refuses(reduced, target):
            return []
        factors = (model.config_name(legal), *model.classes(reduced))
        found.append(Term(key(library, reduced, own.name), factors, tuple(own.work(reduced, legal, target))))
    return found


def key(library, problem, design):
    return f"{library.package} {problem.op}.{design}"


def keys(package):
    """Of all of a package's own designs."""
    served = importlib.import_module(f"{package}.launch").LIBRARY.served.values()
    rungs = ((s.operation.name, rung) for s in served for rung in s.operation.own if rung.is_in(package))
    return [f"{package} {op}.{rung.name}" for op, rung in rungs]


def _own(library, problem, design) -> list[tuple[object, Problem]]:
    """[(Design of its own operation, the problem there)] of the named design; none if there is no such design."""
    operation = library.operation(problem.op)
    if any(rung.name == design and rung.is_in(library.package) for rung in operation.own):
        return [(next(d for d in library.designs(problem.op) if d.name == design), problem)]
    for reduction in operation.reductions:
        for rung in reduction.to.own if operation.own else reduction.to.ladder:
            if operation.named(reduction, rung.name) == design and reduction.refuses(problem) is None:
                return [pair for part in reduction.problems(problem) for pair in _own(library, part, rung.name)]
    return []
