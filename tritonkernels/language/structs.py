"""The structs that pass operands to kernels: a pointer and the strides in elements, 0 where one element repeats.

Kernels and device functions take them as parameters; Triton specialises each field like a flat argument. An absent operand is
None, which a kernel tests by `if c is not None`. The names and order of the strides are those of
cuda_reference/common/structs.cuh. `ptr` comes first, because a plan (plans.py) replaces its address.
"""

from typing import Any, NamedTuple


def operand(struct):
    """Adds `of(tensor)` to a struct: the struct of a tensor with as many dimensions, or None for None."""
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
    """Images, or a convolution's result or its gradient, where c, h and w are channels and positions."""

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
