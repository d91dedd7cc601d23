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
    """`kernel[grid](**arguments)` with the config's tile sizes, warps and stages; nothing happens before run()."""

    kernel: Any
    grid: tuple[int, ...]
    config: Any
    arguments: dict[str, Any]

    def run(self):
        keywords = {k: v for k, v in self.config.all_kwargs().items() if v is not None}
        if backend.name() == "gpu":
            self.kernel[self.grid](**self.arguments, **keywords, **COMPILER_OPTIONS)
            return
        from triton.runtime.errors import InterpreterError

        with backend.INTERPRETER_LOCK, numpy.errstate(all="ignore"):  # a kernel's overflow is the kernel's, as on a GPU
            try:
                self.kernel[self.grid](**self.arguments, **keywords)
            except InterpreterError as error:
                raise LaunchError(f"{self.kernel.__name__} failed in Triton's interpreter: {error}") from error


def _serves(tensor):
    validate.on_backend("the operands", tensor, backend.device_type(), backend.name())


LIBRARY = Library("tritonkernels", target=backend.target, serves=_serves, get_ready=backend.name)
