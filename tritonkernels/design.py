"""Design: one way to compute an operation, with the same interface in both packages."""

import functools
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from .choice.work import Work
from .cook_toom import Transform
from .plans import Launched
from .problem import Problem
from .report import as_html


class Launch(Protocol):
    """A description of one kernel launch, for explain and the offline compiler; run() launches it.

    run() returns the Launched that repeats it with other addresses, or None where that is not enough; build() only compiles.
    alone() is the launch of a kernel that does not wait for those before it: it begins when they have ended.
    """

    grid: tuple[int, ...]
    name: str  # the kernel's

    def run(self) -> Launched | None: ...

    def build(self) -> None: ...

    def alone(self) -> "Launch": ...


def as_dict(config) -> dict[str, Any]:
    """A triton.Config or a mapping of template constants, as a dict of JSON types."""
    if hasattr(config, "all_kwargs"):
        return {k: v for k, v in config.all_kwargs().items() if v is not None}
    return dict(config)


def no_transform(numbers: dict[str, Any]) -> None:
    """`transform` of most designs."""
    return None


def takes_everything(problem: Any, target: Any) -> None:
    """`refuses` of a design without limits."""
    return None


@dataclass(frozen=True, kw_only=True, repr=False)
class Design:
    """One way to compute an operation. It prints as one line, and a call takes it where it takes its name.

    configs   (problem, target) -> the legal configs, which can be hashed: config_of of either package makes such
    launches  (problem, config, *tensors) -> the launches, in order; tensors are the operands and, last, the result
    refuses   (problem, target) -> None, or the reason in a sentence
    work      (problem, config, target) -> the Work of each kernel that it launches, in order: what the model of time estimates;
              a lesson has none
    tile      config -> {"BM", "BN", "BK", "threads", ...} of a blocked product, for the analysis; else None
    transform numbers of a config -> its cook_toom.Transform, which has another error bound; no_transform of most designs

    reduced   problem -> the problem that it computes: another operation's, if it is that one's design
    reads_split  whether its launches take the planes of a Split, too (operations/matmul/split.py); others get B without them
    gates     whether its launches write gated linear units, too (problem.GATED)
    reads_taps  whether a convolution's launches take `taps`, too (operations/conv2d/taps.py), and filters across C as along it

    name, summary, mirrors, kind  filled in by the library, from its Rung in the operation's ladder (operation.py), as is `key`,
    the operation and name under which its times are recorded: "matmul.persistent", also as a design of conv2d
    """

    configs: Callable[[Any, Any], Iterable[Any]]
    launches: Callable[..., Iterable[Launch]]
    refuses: Callable[[Any, Any], str | None] = takes_everything
    work: Callable[[Any, Any, Any], Iterable[Work]] | None = None
    tile: Callable[[Any], dict[str, int]] | None = None
    transform: Callable[[dict[str, Any]], Transform | None] = no_transform
    reduced: Callable[[Any], Any] = lambda problem: problem
    reads_split: bool = False
    gates: bool = False
    reads_taps: bool = False
    key: str = ""
    name: str = ""
    summary: str = ""
    mirrors: str = ""
    kind: str = "contender"

    def __repr__(self) -> str:
        return f"{self.name}, a {self.kind}: {self.summary} ({self.mirrors})"

    @property
    def is_lesson(self) -> bool:
        return self.kind == "lesson"

    def as_rounded(self, problem: Problem) -> Problem:
        """The problem with the precision that the design multiplies in, whose error bound it keeps: that of a split mode, or
        ieee's, if it computes the mode in IEEE arithmetic."""
        return replace(problem, precision=self.reduced(problem).precision)


def imported_later(module, kind):
    """The Design of this kind in a module that is imported when the design is first used: a lesson, which no choice needs, or
    another operation's contender, which serves few problems. It has no `transform` and no `tile`."""
    design = functools.cache(lambda: importlib.import_module(module).DESIGN)

    def later(name) -> Any:
        return lambda *args: getattr(design(), name)(*args)

    names = "configs", "launches", "refuses", *(("work", "reduced") if kind == "contender" else ())
    return Design(**{name: later(name) for name in names}, kind=kind)


def name_of(design):
    """The name that a caller's `design` stands for: a Design or its name."""
    return design.name if isinstance(design, Design) else design


class Designs(tuple[Design, ...]):
    """Designs that print as one line each, names aligned, and are a table in a notebook."""

    def __repr__(self) -> str:
        width = max(len(design.name) for design in self)
        return "\n".join(f"{d.name:<{width}}  {d.kind:<9}  {d.summary} ({d.mirrors})" for d in self)

    def _repr_html_(self) -> str:
        return as_html([{"design": d.name, "kind": d.kind, "summary": d.summary, "mirrors": d.mirrors} for d in self])
