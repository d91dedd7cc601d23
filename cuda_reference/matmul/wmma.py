"""The designs that go through nvcuda::wmma: the table of its 20 combinations of types and shapes, and how they are launched."""

import itertools
from dataclasses import dataclass

import torch

from tritonkernels.design import Design
from tritonkernels.problem import PACKED

from ..launch import CudaLaunch, Source, ceil_div

WIDE = ((16, 16), (32, 8), (8, 32))
LAYOUTS = {"row": "row_major", "col": "col_major"}
TYPES = {
    torch.float16: "__half",
    torch.bfloat16: "__nv_bfloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.int32: "int",
}
SUMS = {"fp16": "__half", "fp32": "float", "fp64": "double", "int32": "int"}
ACTIVATIONS = (None, "relu", "gelu", "silu")  # numbered as in epilogue.cuh


@dataclass(frozen=True)
class Operand:
    """What WMMA multiplies in a precision."""

    name: str  # in operands.cuh
    arch: int  # the first that can
    shapes: tuple  # (WM, WN), the default first
    sums: tuple  # keys of SUMS
    results: tuple  # keys of TYPES

    @property
    def instances(self):
        """(type of the sums, type of the result, layout of A, layout of B) as C++ has them."""
        layouts = [LAYOUTS.values()] * 2 if self.name not in PACKED_OPERANDS else [["row_major"], ["col_major"]]
        for sums, result, a, b in itertools.product(self.sums, self.results, *layouts):
            yield SUMS[sums], TYPES[result], f"matmul::{a}", f"matmul::{b}"


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


def refusal(precisions, problem, target):
    """Why a design with these precisions does not take the problem, or None."""
    if problem.precision not in precisions:
        return f"it has no {problem.precision}"
    needed = OPERANDS[problem.precision].arch
    if target.is_gpu and target.arch < needed:
        return f"{problem.precision} needs sm_{needed}, {target.name} is sm_{target.arch}"
    return None


def instance(problem):
    """The one of its operand's instances that a problem needs."""
    layouts = (problem.a_layout, problem.b_layout) if problem.precision not in PACKED else ("row", "col")
    layouts = (f"matmul::{LAYOUTS.get(layout, 'row_major')}" for layout in layouts)
    return SUMS[problem.accumulate], TYPES[problem.out_dtype], *layouts


def arguments(problem, a, b, c, bias, out):
    """Of every kernel with the Epilogue."""
    scalars = problem.alpha, problem.beta
    if problem.accumulate == "int32":
        scalars = (int(scalar) % 2**32 for scalar in scalars)
    strides = (
        *a.stride(),
        *b.stride(),
        *((0, 0, 0) if c is None else c.stride()),
        *out.stride(),
        *((0,) if bias is None else bias.stride()),
    )
    sizes = problem.m, problem.n, problem.k
    return a, b, c, bias, out, *sizes, *scalars, ACTIVATIONS.index(problem.activation), strides


def a_warp_per_tile():
    def spaces(precision):
        return [{"WM": m, "WN": n} for m, n in OPERANDS[precision].shapes]

    def expression(precision, config, instance):
        sums, result, a, b = instance
        return f"matmul::wmma<matmul::{OPERANDS[precision].name}, {sums}, {config['WM']}, {config['WN']}, {a}, {b}, {result}>"

    sources = {
        precision: Source(
            "matmul/wmma.cuh",
            tuple(expression(precision, *one) for one in itertools.product(spaces(precision), operand.instances)),
        )
        for precision, operand in OPERANDS.items()
    }

    def launches(problem, config, a, b, c, bias, out):
        tiles = ceil_div(problem.m, config["WM"]) * ceil_div(problem.n, config["WN"])
        kernel = expression(problem.precision, config, instance(problem))
        wired = arguments(problem, a, b, c, bias, out)
        yield CudaLaunch(sources[problem.precision], kernel, (a.shape[0] * tiles,), (32, 1, 1), wired)

    return Design(
        name="wmma",
        summary="a warp per WMMA tile, in all 20 combinations of types and shapes that nvcuda::wmma has",
        mirrors="tensor-core seed: WMMA",
        refuses=lambda problem, target: refusal(OPERANDS, problem, target),
        configs=lambda problem, target: spaces(problem.precision),
        launches=launches,
    )
