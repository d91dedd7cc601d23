"""A call with a mistake, and the registry of mistakes (mistakes.py)."""

from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st

from tests.harness import prepare
from tests.properties.examples import NAMES
from tritonkernels.errors import ArgumentError

MISTAKES = {op: [] for op in NAMES}
ADDENDS = {"gemm": "c", "gemv": "y", "matmul": "c"}


@dataclass
class Wrong:
    """A wrong call, op(**arguments), and how it must be refused."""

    op: str
    arguments: dict[str, Any]
    mistake: str = ""
    error: type = ArgumentError
    names: str = ""

    def _repr_pretty_(self, printer, cycle):
        """The text of a failure."""

        def said(value):
            if not isinstance(value, torch.Tensor):
                return repr(value)
            strides = f", strides {value.stride()}" if value.layout == torch.strided else f", {value.layout}"
            return f"<{value.dtype} {tuple(value.shape)}{strides}, {value.device}>"

        arguments = ", ".join(f"{name}={said(value)}" for name, value in self.arguments.items())
        printer.text(f"{self.op}({arguments}), whose mistake is {self.mistake}: {self.error.__name__} of {self.names}")

    def tensors(self):
        """The names of operands that are given and read (c is not read if beta is 0)."""
        read = [name for name in NAMES[self.op] if isinstance(self.arguments.get(name), torch.Tensor)]
        return [name for name in read if name != ADDENDS.get(self.op) or self.arguments["beta"] != 0]

    def result(self):
        return prepare(self.op, **{k: v for k, v in self.arguments.items() if k != "out"}).result


def mistake(*ops):
    """Registers (draw, call) -> (error, argument), which changes the call in place and says how it must be refused."""

    def register(function):
        for op in ops or MISTAKES:
            MISTAKES[op].append(function)
        return function

    return register


def pick(draw, *choices):
    return draw(st.sampled_from(choices))
