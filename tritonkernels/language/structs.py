"""Operands as kernels take them: a pointer and the strides in elements, 0 where one element repeats.

A kernel's parameter is one of these, and so is a device function's; Triton specialises each field for itself, as it does flat
arguments. An operand that a call has not is None, and a kernel asks `if c is not None`. The names and the order of the strides
are those of cuda_reference/common/structs.cuh. `ptr` comes first: a plan (plans.py) puts another address in its place.
"""

from typing import Any, NamedTuple


def operand(struct):
    """Gives a struct `of(tensor)`: that of a tensor with as many dimensions, None of None."""
    struct.of = classmethod(lambda cls, tensor: None if tensor is None else cls(tensor, *tensor.stride()))
    return struct


@operand
class Vector(NamedTuple):
    ptr: Any
    step: Any


@operand
class Vectors(NamedTuple):
    ptr: Any
    batch: Any
    step: Any


@operand
class Matrix(NamedTuple):
    ptr: Any
    row: Any
    col: Any


@operand
class Matrices(NamedTuple):
    ptr: Any
    batch: Any
    row: Any
    col: Any


@operand
class Images(NamedTuple):
    """Also a convolution's result and its gradient: c, h and w are then its channels and positions."""

    ptr: Any
    n: Any
    c: Any
    h: Any
    w: Any


@operand
class Filters(NamedTuple):
    ptr: Any
    k: Any
    c: Any
    r: Any
    s: Any
