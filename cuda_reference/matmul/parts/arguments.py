"""The arguments of every kernel with the Epilogue (epilogue.cuh), and the C++ names of types."""

import itertools

import torch

from tritonkernels.problem import GATED

from ...common.activations import ACTIVATIONS

TYPES = {
    torch.float16: "__half",
    torch.bfloat16: "__nv_bfloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.int32: "int",
}
# What mma.sync multiplies, by precision, and wgmma but for fp64; wgmma also either fp8 by either
ELEMENTS = {
    "fp16": "__half",
    "bf16": "__nv_bfloat16",
    "tf32": "float",
    "int8": "signed char",
    "uint8": "unsigned char",
    "fp64": "double",
}
FP8 = {torch.float8_e4m3fn: "E4M3", torch.float8_e5m2: "E5M2"}
SUMS = {"fp16": "__half", "fp32": "float", "fast": "float", "fp64": "double", "int32": "int"}


def arguments(problem, a, b, c, bias, out):
    """(a, b, c, bias, out, M, N, K, alpha, beta, activation, strides)."""
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
    sizes, activation = (problem.m, problem.n, problem.k), GATED.get(problem.activation, problem.activation)
    return a, b, c, bias, out, *sizes, *scalars, ACTIVATIONS.index(activation), strides


def mma_types(problem):
    """{ELEMENT}, {RESULT} and {SUMS} of a template that uses mma.sync or wgmma."""
    element = ELEMENTS.get(problem.precision) or f"Fp8<{FP8[problem.dtype]}, {FP8[problem.b_dtype or problem.dtype]}>"
    return {"ELEMENT": element, "RESULT": TYPES[problem.out_dtype], "SUMS": SUMS[problem.accumulate]}


def scaled(problem, c, bias):
    """{SCALED} of a template: nothing follows alpha."""
    return c is None and bias is None and problem.activation is None


def gated(problem):
    """{GATED} at the end of a template: results are made of pairs of sums (pairs.cuh)."""
    return ", true" if problem.is_gated else ""


def layouts():
    """All {A_BY_K} and {B_BY_K} of a template: whether the slices of an operand lie along K."""
    return [{"A_BY_K": a, "B_BY_K": b} for a, b in itertools.product((True, False), repeat=2)]
