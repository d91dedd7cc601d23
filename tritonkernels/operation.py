"""What can be asked: an Operation, the Call that its arguments make, and the designs that answer it, its own or another's."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from . import numerics
from .problem import Problem

PACKAGES = ("tritonkernels", "cuda_reference")


@dataclass(frozen=True)
class Call:
    """Validated arguments: the problem, the operands as kernels take them, and the result to return.

    `parts` are the tensors of one launch each, result last; there are several only where a batch has no single stride.
    """

    problem: Problem
    parts: tuple[tuple[torch.Tensor | None, ...], ...]
    result: torch.Tensor


@dataclass(frozen=True)
class Rung:
    """A design's entry in the ladder of its operation: what both packages have under this name.

    summary   one line of prose
    mirrors   the rung of the published design, or what it goes beyond
    only      the one package that has it, and `why` in one sentence; both have it by default
    formerly  names that it had before, for the error that says its new one
    """

    name: str
    summary: str
    mirrors: str
    only: str | None = None
    why: str | None = None
    formerly: tuple[str, ...] = ()

    def is_in(self, package):
        return self.only in (None, package)


@dataclass(frozen=True)
class Reduction:
    """How calls of one operation are calls of another, whose designs answer them too.

    to        the other operation; its design "persistent" is "matmul.persistent" here, or "persistent" where the operation
              has no designs of its own
    summary   which calls, in one line
    refuses   problem -> None, or the sentence that says why it is no problem of the other's
    problems  problem -> the other's problems that it comes down to
    steps     (problem, arrange, *tensors) -> what to do, in order: Calls of the other operation, and the launches before them,
              which `arrange` makes (Served)
    formerly  the name of a design that did this, for the error that says which do now
    """

    to: "Operation"
    summary: str
    refuses: Callable[[Any], str | None]
    problems: Callable[[Any], tuple[Problem, ...]]
    steps: Callable[..., Iterator[Any]]
    formerly: str | None = None

    def largest(self, problem):
        """The one with most of the work, by which designs and configs are chosen."""
        return max(self.problems(problem), key=lambda reduced: reduced.flops)

    def design(self, design, arrange):
        """The other operation's Design as one of this operation."""

        def refuses(problem, target):
            refusals = (design.refuses(reduced, target) for reduced in self.problems(problem))
            return self.refuses(problem) or next(filter(None, refusals), None)

        def launches(problem, config, *tensors):
            for step in self.steps(problem, arrange, *tensors):
                if not isinstance(step, Call):
                    yield step
                    continue
                for part in step.parts:
                    yield from design.launches(step.problem, config, *part)

        def configs(problem, target):
            return design.configs(self.largest(problem), target)

        return replace(design, refuses=refuses, configs=configs, launches=launches, tile=None)


@dataclass(frozen=True)
class Operation:
    """What can be asked, of either package.

    prepare     a user's arguments -> Call, or a typed error that names the argument
    own         the ladder of its own designs, simplest first
    reductions  the operations whose designs answer it too
    """

    name: str
    prepare: Callable[..., Call]
    own: tuple[Rung, ...] = ()
    reductions: tuple[Reduction, ...] = ()

    def reference(self, *args, **kwargs):
        """The exact result of a user's arguments, in float64."""
        return numerics.reference(self.name, *args, **kwargs)

    @functools.cached_property
    def ladder(self) -> tuple[Rung, ...]:
        """Every design, its own before those of others."""
        return (*self.own, *(rung for reduction in self.reductions for rung in self._reduced(reduction)))

    def _reduced(self, reduction):
        """The other's own designs; all of its designs, where this operation has none: not a third one's by way of the other."""
        of = reduction.to.name
        for rung in reduction.to.own if self.own else reduction.to.ladder:
            former = tuple(self.named(reduction, name) for name in rung.formerly)
            yield replace(rung, name=self.named(reduction, rung.name), mirrors=f"{of}: {rung.name}", formerly=former)

    def named(self, reduction, design):
        """The other operation's design as it is called here."""
        return f"{reduction.to.name}.{design}" if self.own else design

    def renamed(self, design, package):
        """What a name of former times is called now, as a sentence; empty where it was none."""
        now = [rung.name for rung in self.rungs(package) if design in rung.formerly]
        for reduction in self.reductions:
            if design == reduction.formerly:
                now += [rung.name for rung in self._reduced(reduction) if rung.is_in(package)]
        return f"{design} is called {' or '.join(now)} now." if now else ""

    def rungs(self, package) -> tuple[Rung, ...]:
        """Of the designs that a package has."""
        return tuple(rung for rung in self.ladder if rung.is_in(package))


@dataclass(frozen=True)
class Served:
    """An Operation as a package answers it.

    prefer    (problem, target) -> the name of the design to take, or names in order of preference; the name of an operation
              that it reduces to stands for that one's order
    expected  (design, problem, target) -> what the operation's own rule expects of a design, or None
    arrange   the launch that a reduction needs before the other operation's, by what it hands over
    """

    operation: Operation
    prefer: Callable[..., Any] = lambda problem, target: ()
    expected: Callable[..., Any] = lambda design, problem, target: None
    arrange: Callable[..., Any] | None = None
