"""How Triton designs are launched, and the Library of them."""

from dataclasses import dataclass
from typing import Any

import numpy

from . import backend, validate
from .errors import LaunchError
from .library import Library

COMPILER_OPTIONS = {"enable_fp_fusion": True}  # a b + c as one FMA; Triton's default for it changes between versions


@dataclass(frozen=True)
class TritonLaunch:
    """`kernel[grid](...)` with the config's tile sizes, warps and stages; nothing happens before run().

    A kernel takes from `arguments` what its parameters name, so the kernels of a design can share one dict.
    """

    kernel: Any
    grid: tuple[int, ...]
    config: Any
    arguments: dict[str, Any]

    @property
    def name(self):
        """The kernel's, for people: "pack"."""
        return self.kernel.__name__.strip("_").removesuffix("_kernel")

    @property
    def values(self):
        """The kernel's parameters by name, in order."""
        known = {**self.arguments, **self.config.kwargs}
        return {name: known[name] for name in self.kernel.arg_names}

    @property
    def options(self):
        """What the compiler is told."""
        chosen = self.config.all_kwargs()
        return {k: v for k, v in chosen.items() if v is not None and k not in self.config.kwargs} | COMPILER_OPTIONS

    def run(self):
        if backend.name() == "gpu":
            self.kernel[self.grid](**self.values, **self.options)
            return
        from triton.runtime.errors import InterpreterError

        with backend.INTERPRETER_LOCK, numpy.errstate(all="ignore"):  # a kernel's overflow is the kernel's, as on a GPU
            try:
                self.kernel[self.grid](**self.values)
            except InterpreterError as error:
                raise LaunchError(f"{self.kernel.__name__} failed in Triton's interpreter: {error}") from error


def _serves(tensor):
    validate.on_backend("the operands", tensor, backend.device_type(), backend.name())


LIBRARY = Library("tritonkernels", target=backend.target, serves=_serves, get_ready=backend.name)
