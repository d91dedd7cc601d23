"""Typed errors. Every one is raised before anything is launched, and says what it got, what is allowed and what to do.

Argument errors derive from the built-in class that torch's users expect (ValueError or TypeError), so `except ValueError`
works.
"""


class TritonKernelsError(Exception):
    """Base of everything this library raises on purpose."""


class ArgumentError(TritonKernelsError, ValueError):
    """An argument that cannot be accepted: its name, what it got, what is allowed, and a remedy if there is one."""

    def __init__(self, argument, got, allowed, remedy=""):
        self.argument = argument
        super().__init__(f"{argument}: got {got}; allowed: {allowed}." + (f" {remedy}" if remedy else ""))


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
    """The named design, or every design, refuses this problem on this target; the message gives each reason."""


class BackendError(TritonKernelsError, RuntimeError):
    """The selected backend is unknown or not usable on this machine."""


class LaunchError(TritonKernelsError, RuntimeError):
    """A kernel failed during its launch or run; the message quotes the driver or the emulation."""


class BuildError(TritonKernelsError, RuntimeError):
    """A CUDA kernel could not be built; the message quotes the compiler's last lines."""


class ToolchainError(BuildError):
    """A tool needed for the build is missing or too old; the message says which and how to get it."""


class CacheError(TritonKernelsError, RuntimeError):
    """The user's cache folder cannot be used, or is not the user's alone."""


class TuningError(TritonKernelsError, RuntimeError):
    """Nothing was tuned, or what was found cannot be kept; the message says why and what to do."""
