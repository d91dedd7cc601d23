"""Typed errors. Every one is raised before anything is launched, and says what it got, what is allowed and what to do.

Argument errors derive from the built-in class that torch's users expect (ValueError or TypeError), so `except ValueError`
works.
"""

import copyreg
from collections.abc import Mapping
from typing import Any

from .report import as_html


class TritonKernelsError(Exception):
    """Base of everything this library raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as it is, without __init__, which takes other arguments: a pool of processes does so."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # pyright: ignore[reportAttributeAccessIssue]


class ArgumentError(TritonKernelsError, ValueError):
    """An argument that cannot be accepted: its name, what it got, what is allowed, and what to do, in a sentence."""

    def __init__(self, argument: str, got: object, allowed: object, remedy: str) -> None:
        self.argument, self.remedy = argument, remedy
        self._table = {"argument": argument, "got": str(got), "allowed": str(allowed), "what to do": remedy}
        super().__init__(f"{argument}: got {got}; allowed: {allowed}. {remedy}")

    def reworded(self, words: Mapping[str, str]) -> "ArgumentError":
        """The same error, with other words for what its text has."""
        texts = []
        for text in self._table.values():
            for ours, theirs in words.items():
                text = text.replace(ours, theirs)
            texts.append(text)
        return type(self)(*texts)

    def _repr_html_(self) -> str:
        return as_html(self._table)


class ShapeError(ArgumentError):
    """A rank or size that does not fit the operation or the other arguments."""


class DtypeError(ArgumentError, TypeError):
    """Not a tensor, not a number, or a dtype that the operation does not support."""


class DeviceError(ArgumentError):
    """Tensors on different devices, or on one that the backend does not use."""


class OverlapError(ArgumentError):
    """`out` shares memory with an input or with itself, so the result would depend on the order of writes."""


class GradientError(ArgumentError):
    """The call needs a gradient that the operation cannot compute: by requires_grad, a forward-mode tangent or torch.func."""


class UnknownDesignError(ArgumentError):
    """No design or operation has that name; the message lists the known ones."""


class ConfigError(ArgumentError):
    """A config that is not one of the design's."""


class UnsupportedError(TritonKernelsError, NotImplementedError):
    """The named design, or every design, refuses this problem on this target; the message gives each reason.

    refusals  {design: why}
    reason    the message without what to do
    """

    def __init__(self, summary: str, refusals: Mapping[str, str] | None = None, remedy: str = "") -> None:
        self.refusals: Mapping[str, str] = refusals or {}
        self._table = {"refused": summary, "because": self.refusals, "what to do": remedy}
        reasons = "; ".join(f"{name}: {why}" for name, why in self.refusals.items())
        self.reason = ": ".join(filter(None, (summary, reasons)))
        super().__init__(". ".join(filter(None, (self.reason, remedy))))

    def _repr_html_(self) -> str:
        return as_html({name: value for name, value in self._table.items() if value})


class BackendError(TritonKernelsError, RuntimeError):
    """The selected backend is unknown or not usable on this machine."""


class LaunchError(TritonKernelsError, RuntimeError):
    """A kernel failed during its launch or run; the message quotes the driver or the emulation, and says what to do."""

    REMEDY = (
        "Another design may do: design=..., in a new process if this one can launch nothing more on the GPU. "
        "Report this with what explain(...) says of the call."
    )


class BuildError(TritonKernelsError, RuntimeError):
    """A CUDA kernel could not be built; the message quotes the compiler's last lines, and says what to do."""


class ToolchainError(BuildError):
    """A tool needed for the build is missing or too old; the message says which and how to get it."""


class CacheError(TritonKernelsError, RuntimeError):
    """The user's cache folder cannot be used, or is not the user's alone."""


class TuningError(TritonKernelsError, RuntimeError):
    """Nothing was tuned, or what was found cannot be kept; the message says why and what to do."""
