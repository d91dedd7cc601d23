"""The 20 combinations of types and shapes of nvcuda::wmma (operands.cuh), as a table by precision."""

import itertools
from dataclasses import dataclass

import torch

from tritonkernels.problem import PACKED

from .arguments import SUMS, TYPES

WIDE = ((16, 16), (32, 8), (8, 32))
LAYOUTS = {"row": "row_major", "col": "col_major"}


@dataclass(frozen=True)
class Operand:
    """The types and shapes of WMMA for one precision."""

    name: str  # in operands.cuh
    arch: int  # the first with it
    shapes: tuple  # (WM, WN), the default first
    sums: tuple  # keys of SUMS
    results: tuple  # keys of TYPES

    @property
    def instances(self):
        """{SUMS}, {RESULT}, {A} and {B} of templates: the C++ names of the types of sums and result, and of the layouts."""
        layouts = [LAYOUTS.values()] * 2 if self.name not in PACKED_OPERANDS else [["row_major"], ["col_major"]]
        for sums, result, a, b in itertools.product(self.sums, self.results, *layouts):
            yield _parameters(SUMS[sums], TYPES[result], a, b)


FLOATS, INTS = ("fp32",), (("int32",), (torch.int32,))
OPERANDS = {
    "fp16": Operand("Half", 70, WIDE, ("fp32", "fp16"), (torch.float16, torch.float32)),
    "bf16": Operand("BFloat16", 80, WIDE, FLOATS, (torch.bfloat16, torch.float32)),
    "tf32": Operand("Tf32", 80, ((16, 16),), FLOATS, (torch.float32,)),
    "fp64": Operand("Double", 80, ((8, 8),), ("fp64",), (torch.float64,)),
    "int8": Operand("Int8", 72, WIDE, *INTS),
    "uint8": Operand("Uint8", 72, WIDE, *INTS),
    "int4": Operand("Int4", 75, ((8, 8),), *INTS),
    "uint4": Operand("Uint4", 75, ((8, 8),), *INTS),
    "b1_xor": Operand("BitsXor", 75, ((8, 8),), *INTS),
    "b1_and": Operand("BitsAnd", 80, ((8, 8),), *INTS),
}
PACKED_OPERANDS = {OPERANDS[precision].name for precision in PACKED}


def lacks(precisions, problem, target):
    """Why a design with these precisions does not take the problem, or None."""
    if problem.precision not in precisions:
        return f"it has no {problem.precision}"
    return target.lacks(problem.precision, OPERANDS[problem.precision].arch)


def instance(problem):
    """The operand's instance that a problem needs."""
    layouts = (problem.a_layout, problem.b_layout) if problem.precision not in PACKED else ("row", "col")
    a, b = (LAYOUTS.get(layout, "row_major") for layout in layouts)
    return _parameters(SUMS[problem.accumulate], TYPES[problem.out_dtype], a, b)


def _parameters(sums, result, a, b):
    return {"SUMS": sums, "RESULT": result, "A": f"matmul::{a}", "B": f"matmul::{b}"}
