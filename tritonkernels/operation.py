"""An Operation, the Call that its arguments make, and the designs that compute it: its own and those of other operations."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from . import numerics
from .choice.work import KNOWN_PROBLEMS
from .problem import Problem, bound_idle_strides

PACKAGES = ("tritonkernels", "cuda_reference")
OPERATIONS: dict[str, "Operation"] = {}  # by name: two operations may compute calls of each other


@dataclass(frozen=True)
class Call:
    """Validated arguments: the problem, the operands as kernels take them, and the result to return.

    `parts` are the tensors of each launch, as designs take them: dimensions of one have no strides beyond their memory. There
    are several only if a batch has no single stride. `options` are what else a design's launches are given, by name.
    """

    problem: Problem
    parts: tuple[tuple[torch.Tensor | None, ...], ...]
    result: torch.Tensor
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "parts", tuple(tuple(map(bound_idle_strides, part)) for part in self.parts))


@dataclass(frozen=True)
class Rung:
    """A design's entry in the ladder of its operation, the same for both packages.

    summary   what it does, in one line
    mirrors   the published design that it follows, or that it goes beyond
    kind      "contender": what a call may get; "lesson": teaches one technique, used by name only (lesson.py)
    only      the package that has it, if the other one has not; `why` is the reason in one sentence
    formerly  its earlier names; the error for one of them gives the new name
    """

    name: str
    summary: str
    mirrors: str
    kind: str = "contender"
    only: str | None = None
    why: str | None = None
    formerly: tuple[str, ...] = ()

    def is_in(self, package):
        return self.only in (None, package)


@dataclass(frozen=True)
class Reduction:
    """Computes calls of one operation as calls of another, so that the other's designs can be chosen too.

    to        the name of the other operation; its design "persistent" is called "matmul.persistent" here, or "persistent" if
              this operation has no designs of its own
    summary   which calls it applies to, in one line
    refuses   problem -> None, or why it does not apply to the problem, in a sentence
    problems  problem -> the other operation's problems that compute it
    steps     (problem, arrange, *tensors) -> what to run, in order: Calls of the other operation, and the launches that they
              need before, which `arrange` makes (Served)
    arranged  (problem, design) -> the Work of the launches that `arrange` makes
    lent      the names of the designs that serve it; None: all contenders
    formerly  the name of a design that this reduction replaces; the error for it gives the new names
    """

    to: str
    summary: str
    refuses: Callable[[Any], str | None]
    problems: Callable[[Any], tuple[Problem, ...]]
    steps: Callable[..., Iterator[Any]]
    arranged: Callable[[Any, Any], tuple[Any, ...]] = lambda problem, design: ()
    lent: tuple[str, ...] | None = None
    formerly: str | None = None

    @property
    def operation(self) -> "Operation":
        """The other operation."""
        return OPERATIONS[self.to]

    def lends(self, design):
        """Whether a Design or a Rung of the other operation serves this one."""
        return design.kind == "contender" and (self.lent is None or design.name in self.lent)

    @functools.cached_property
    def given(self):
        """problem -> (the other operation's problems, the one with the most work: designs and configs are chosen for it)."""

        @functools.lru_cache(KNOWN_PROBLEMS)
        def given(problem):
            problems = self.problems(problem)
            return problems, max(problems, key=lambda reduced: reduced.flops)

        return given

    def design(self, design, arrange):
        """The other operation's Design, as a Design of this operation."""
        given, arrange = self.given, arrange and arrange._replace(design=design)

        def refuses(problem, target):
            if refusal := self.refuses(problem):
                return refusal
            return next(filter(None, (design.refuses(reduced, target) for reduced in given(problem)[0])), None)

        def launches(problem, config, *tensors):
            for step in self.steps(problem, arrange, *tensors):
                if not isinstance(step, Call):
                    yield step
                    continue
                for part in step.parts:
                    yield from design.launches(step.problem, config, *part, **step.options)

        def configs(problem, target):
            return design.configs(given(problem)[1], target)

        def work(problem, config, target):
            yield from self.arranged(problem, design)
            for reduced in given(problem)[0]:
                yield from design.work(reduced, config, target)

        def reduced(problem):
            return design.reduced(given(problem)[1])

        changed = {"refuses": refuses, "configs": configs, "launches": launches, "work": work, "reduced": reduced}
        return replace(design, **changed, tile=None)


@dataclass(frozen=True)
class Operation:
    """What a user function computes, the same in both packages.

    prepare     a user's arguments -> Call, or a typed error that names the argument
    rules       what torch needs to know of it (torch_ops/rules.py)
    own         the ladder of its own designs, simplest first
    reductions  to other operations, whose designs can compute it too
    """

    name: str
    prepare: Callable[..., Call]
    rules: Any
    own: tuple[Rung, ...] = ()
    reductions: tuple[Reduction, ...] = ()

    def __post_init__(self):
        OPERATIONS.setdefault(self.name, self)

    def reference(self, *args, **kwargs):
        """The exact result of a user's arguments, in float64."""
        return numerics.reference(self.name, *args, **kwargs)

    @functools.cached_property
    def ladder(self) -> tuple[Rung, ...]:
        """All designs, its own before those of other operations."""
        return (*self.own, *(rung for reduction in self.reductions for rung in self._reduced(reduction)))

    def _reduced(self, reduction):
        """The other operation's contenders; without those that it has by reductions, unless this operation has none itself."""
        for rung in filter(reduction.lends, self.lent_by(reduction.operation)):
            former = tuple(self.named(reduction, name) for name in rung.formerly)
            mirrors = f"{reduction.to}: {rung.name}"
            yield replace(rung, name=self.named(reduction, rung.name), mirrors=mirrors, formerly=former)

    def lent_by(self, other):
        """The rungs of the designs that this operation may have of another: that one's own, or if this has none itself, all."""
        return other.own if self.own else other.ladder

    def named(self, reduction, design):
        """The name of the other operation's design in this operation."""
        return f"{reduction.to}.{design}" if self.own else design

    def renamed(self, design, package):
        """A sentence with the present name of a design's earlier name; empty if `design` is no earlier name."""
        now = [rung.name for rung in self.rungs(package) if design in rung.formerly]
        for reduction in self.reductions:
            if design == reduction.formerly:
                now += [rung.name for rung in self._reduced(reduction) if rung.is_in(package)]
        return f"{design} is called {' or '.join(now)} now." if now else ""

    def rungs(self, package) -> tuple[Rung, ...]:
        """The rungs of the designs that a package has."""
        return tuple(rung for rung in self.ladder if rung.is_in(package))


@dataclass(frozen=True)
class Served:
    """An Operation in one package. `arrange` makes the launches that a reduction needs before those of the other operation, for
    the Design in its field `design`."""

    operation: Operation
    arrange: Any = None
