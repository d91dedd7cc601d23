"""The arguments that matmul's kernels share."""

from typing import Any, NamedTuple

import torch

from ...language.scalars import scalar
from ...language.structs import Matrices, Vector
from ...language.tiles import multiple_of
from ...language.triton import tl
from ...problem import GATED, PACKED, needs_wide_offsets

# accumulate -> the type in which partial sums are stored
WORKSPACES = {"fp32": torch.float32, "fast": torch.float32, "fp16": torch.float32, "fp64": torch.float64, "int32": torch.int32}


class Sizes(NamedTuple):
    """K in stored elements; batches only for kernels whose programs walk several tiles, else None.

    Then constants, three each: multiple_of (language/tiles.py) an operand's strides; and M, N and K, where elements are
    adjacent along them.
    """

    M: Any
    N: Any
    K: Any
    batches: Any
    OF_A: Any
    OF_B: Any
    OF_C: Any
    OF_OUT: Any
    OF_SIZES: Any


class Epilogue(NamedTuple):
    """What epilogue.py takes with the scales, C and bias. Constants: the ACTIVATION, whether it is QUICK
    (language/activation.py), and whether it is GATED: that of the first of two columns, which is multiplied by the second."""

    alpha: Any
    beta: Any
    ACTIVATION: Any
    QUICK: Any
    GATED: Any


class Arithmetic(NamedTuple):
    """Constants: the precision of the products, the type of the sums, whether tf32 operands were rounded before, and whether
    offsets need 64 bits."""

    PRECISION: Any
    ACCUMULATE: Any
    ARE_TF32: Any
    WIDE: Any


def matmul_arguments(problem, a, b, c, bias, out, scale_a=None, scale_b=None, batches=None, are_tf32=False):
    """(a, b, scale_a, scale_b, c, bias, out, sizes, epilogue, how); a and b may be packed copies."""
    constants = problem.precision, problem.accumulate, are_tf32, needs_wide_offsets(a, b, c, bias, out, scale_a, scale_b)
    return (
        Matrices.of(a),
        Matrices.of(b),
        Matrices.of(scale_a),
        Matrices.of(scale_b),
        *result_arguments(c, bias, out),
        sizes_of(problem, stored_k(problem), a, b, c, out, batches),
        epilogue_of(problem),
        Arithmetic(*map(tl.constexpr, constants)),
    )


def sizes_of(problem, k, a, b, c, out, batches=None):
    """a and b are None if the kernel reads copies, which are padded."""
    sizes = problem.m, problem.n, k
    strides = a_strides, b_strides, _, out_strides = [(0, 0, 0) if x is None else x.stride() for x in (a, b, c, out)]
    along_m, along_n = (a_strides[1], out_strides[1]), (b_strides[2], out_strides[2])
    along = along_m, along_n, (a_strides[2], b_strides[1])
    strides.append([size if 1 in steps else 1 for size, steps in zip(sizes, along, strict=True)])
    return Sizes(*sizes, batches, *(tl.constexpr(tuple(map(multiple_of, numbers))) for numbers in strides))


def result_arguments(c, bias, out):
    return Matrices.of(c), Vector.of(bias), Matrices.of(out)


def epilogue_of(problem):
    scalars = (scalar(x, problem.out_dtype) for x in (problem.alpha, problem.beta))
    activation = GATED.get(problem.activation, problem.activation)
    return Epilogue(*scalars, *map(tl.constexpr, (activation, problem.out_dtype.itemsize == 2, problem.is_gated)))


def stored_k(problem):
    """K in elements of the tensors: bytes where a byte packs several."""
    return problem.k // PACKED.get(problem.precision, 1)
