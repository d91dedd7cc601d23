"""Structs of gemv's kernels, besides the operands of language/structs.py."""

from typing import Any, NamedTuple

from ...language.scalars import scalar
from ...language.structs import Matrices, Vector, Vectors
from ...language.triton import tl
from ...operations.gemv.vectors import pitch, width_of


class Addend(NamedTuple):
    """y and its factor beta."""

    ptr: Any
    batch: Any
    step: Any
    beta: Any


class Rows(NamedTuple):
    """The rows of all matrices of a batch, and how they are read: `head` elements, `vectors` of V, the rest up to `size`.

    `per_matrix` is None where there is only one matrix, `head` and `size` where vectors are all. A and x begin after the head;
    A's strides between rows are in units of V, that of x between vectors is in units of XV.
    """

    count: Any
    per_matrix: Any
    head: Any
    vectors: Any
    size: Any
    V: Any  # constants
    XV: Any


class Splits(NamedTuple):
    """Programs that share rows: where they leave their partial sums, and how many vectors or columns each of them takes."""

    ptr: Any
    share: Any


def alpha_of(problem):
    """alpha as an argument."""
    return scalar(problem.alpha, problem.dtype)


def results(problem, y, scale, out):
    """(y, scale, out) as structs."""
    addend = None if y is None else Addend(y, *y.stride(), scalar(problem.beta, problem.dtype))
    return addend, Vector.of(scale), Vectors.of(out)


def reading(a, x, pieces):
    """(a, x, rows) as structs; `pieces` is the Cut of A's rows."""
    batch, m, _ = a.shape
    body, x_body, width = a[..., pieces.head :], x[..., pieces.head :], pieces.width
    x_width = width_of(x_body, width)
    matrices = Matrices(body, pitch(a, 0, width), pitch(a, 1, width), a.stride(2))
    vectors = Vectors(x_body, pitch(x, 0, x_width), x.stride(1))
    rows = Rows(
        count=batch * m,
        per_matrix=m if batch > 1 else None,
        head=pieces.head or None,
        vectors=pieces.vectors,
        size=pieces.size if pieces.vectors * width < pieces.size else None,
        V=tl.constexpr(width),
        XV=tl.constexpr(x_width),
    )
    return matrices, vectors, rows
