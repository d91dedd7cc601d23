"""What can be asked: an Operation, the Call that its arguments make, and the ladder of designs that answer it."""

from collections.abc import Callable
from dataclasses import dataclass
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
class Operation:
    """What can be asked, of either package.

    prepare   a user's arguments -> Call, or a typed error that names the argument
    ladder    its designs, simplest first
    """

    name: str
    prepare: Callable[..., Call]
    ladder: tuple[Rung, ...]

    def reference(self, *args, **kwargs):
        """The exact result of a user's arguments, in float64."""
        return numerics.reference(self.name, *args, **kwargs)

    def rungs(self, package) -> tuple[Rung, ...]:
        """Of the designs that a package has."""
        return tuple(rung for rung in self.ladder if rung.is_in(package))


@dataclass(frozen=True)
class Served:
    """An Operation as a package answers it.

    prefer    (problem, target) -> the name of the design to take, or names in order of preference
    expected  (design, problem, target) -> what the operation's own rule expects of a design, or None
    through   for an operation that reduces to `of`: a design of that one -> the design of this one
    """

    operation: Operation
    prefer: Callable[..., Any] = lambda problem, target: ()
    expected: Callable[..., Any] = lambda design, problem, target: None
    of: Operation | None = None
    through: Callable[..., Any] | None = None
