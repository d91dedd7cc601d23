"""How a problem is solved: the Design noun, and the one interface that both packages' designs meet."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from .cook_toom import Transform
from .plans import Launched


class Launch(Protocol):
    """One kernel launch, described but not yet done: explain reads it, the offline compiler reads it, run() does it.

    run() returns how to do it again, or None where that takes more than other addresses.
    """

    grid: tuple[int, ...]
    name: str  # of the kernel

    def run(self) -> Launched | None: ...


def takes_everything(problem, target):
    """`refuses` of a design without limits of its own."""
    return None


@dataclass(frozen=True, kw_only=True)
class Design:
    """One way to compute an operation.

    configs   (problem, target) -> the legal configs; the first is what an untuned call gets
    launches  (problem, config, *tensors) -> the launches, in order; tensors are the operands and, last, the result
    refuses   (problem, target) -> None, or the sentence that says why not
    tile      config -> {"BM", "BN", "BK", "threads", ...} of a blocked product, from which the analysis predicts; else None
    transform numbers of a config -> the cook_toom.Transform that it multiplies through, whose bound is another, or None

    name, summary, mirrors    from its Rung in the operation's ladder (operation.py), which the library fills in
    """

    configs: Callable[[Any, Any], Iterable[Any]]
    launches: Callable[..., Iterable[Launch]]
    refuses: Callable[[Any, Any], str | None] = takes_everything
    tile: Callable[[Any], dict[str, int]] | None = None
    transform: Callable[[dict[str, Any]], Transform | None] = lambda numbers: None
    name: str = ""
    summary: str = ""
    mirrors: str = ""
