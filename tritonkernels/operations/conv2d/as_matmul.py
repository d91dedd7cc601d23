"""A convolution whose patches do not overlap as a product of matrices: patches are the rows of one, filters those of the other.

Such are one tap with any stride, filters as large as their stride (patch embeddings), and filters as large as the image. A
pixel is its own patch, so with one tap no data is moved: channels are contiguous in channels_last and a plane apart in NCHW,
which only changes strides. Patches that do not lie in evenly spaced rows are copied once (unfolded.py).

The product is transposed if needed so that rows of the result are contiguous, as TMA requires: (patches, C R S) (C R S, K) in
channels_last, else (K, C R S) (C R S, patches), image by image. Images, or even lines, of results that are not evenly spaced
become a batch.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ...batches import merges
from ...operation import Reduction
from ...validate import LARGEST_SIZE
from ..matmul.prepare import prepare
from .unfolded import as_they_lie, copied, in_rows, is_unpadded, operands, overlap


class Arrange(NamedTuple):
    """The launch of a package that steps need.

    unfold  Copies, one or two -> the launch that fills their matrices
    design  the Design that computes the product
    """

    unfold: Callable[..., Any]
    design: Any = None


@functools.lru_cache(1024)
def refuses(problem):
    pixels, columns = problem.n * problem.p * problem.q, problem.c * problem.r * problem.s
    faults = {
        f"patches of {problem.r} x {problem.s} that overlap": overlap(problem),
        "padding": not is_unpadded(problem),
        "groups": problem.groups != 1,
        "no outputs of an image": not problem.p * problem.q,  # as a gradient of images without pixels
        f"{pixels} pixels": pixels > LARGEST_SIZE,
        f"{columns} inputs a patch": columns > LARGEST_SIZE,
    }
    found = [what for what, is_so in faults.items() if is_so]
    return f"a product of matrices has every patch once, and this has {' and '.join(found)}" if found else None


def steps(problem, arrange, input, weight, bias, out, residual=None):
    patches, filters, results, residual, copies = _matrices(problem, input, weight, out, residual)
    if copies:
        yield arrange.unfold(*copies)
    yield _product(problem, patches, filters, bias, residual, results.stride(-1) == 1, results)


def _matrices(problem, input, weight, out, residual):
    """(patches (..., C R S), filters (K, C R S), results (..., K), residual as those or None, the Copies that fill the first
    two)."""
    patches, filters, copies = operands(problem, input, weight)
    results, added = (None if t is None else t.permute(0, 2, 3, 1) for t in (out, residual))
    apart = columns_are_apart(results)
    if apart and not merges(patches, 0):  # else a product for each image
        patches, copy = in_rows(patches)
        copies = copies + copy
    apart = apart and (added is None or merges(added, 0))
    if apart and patches.stride(-1) == 1 and problem.n * problem.p > problem.q:  # a row is short
        patches, results, added = (t if t is None else t.flatten(0, 1).transpose(0, 1) for t in (patches, results, added))
    while patches.ndim > 2 and all(merges(t, t.ndim - 3) for t in (patches, results, added) if t is not None):
        patches, results, added = (None if t is None else t.flatten(-3, -2) for t in (patches, results, added))
    return patches, filters, results, added, copies


def columns_are_apart(results):
    """Whether rows of a result (N, P, Q, K) with K inside follow each other evenly, but not its columns: a phase of a gradient
    in channels_last."""
    return results.stride(-1) == 1 and merges(results, 0) and not merges(results, 1)


def _product(problem, patches, filters, bias, residual, channels_inside, results=None):
    """The Call of matmul, which adds one matrix and a bias along rows: of a transposed product the bias is that matrix."""
    options = {"precision": problem.precision, "activation": problem.activation}
    if channels_inside or (bias is not None and residual is not None):
        return prepare(patches, filters.mT, **options, c=residual, bias=bias, out=results)
    column = None if bias is None else bias[:, None]
    added, results = (None if t is None else t.mT for t in (residual, results))
    return prepare(filters, patches.mT, **options, c=column if added is None else added, out=results)


@functools.lru_cache(1024)
def problems(problem):
    """The problems of contiguous tensors; `steps` sees how they really lie."""
    input, weight, out = as_they_lie(problem)
    patches, filters, _, residual, _ = _matrices(problem, input, weight, out, out if problem.residual else None)
    bias = input.new_empty(problem.k) if problem.has_bias else None
    return (_product(problem, patches, filters, bias, residual, problem.channels_last).problem,)


TO_MATMUL = Reduction(
    to="matmul",
    summary="patches that do not overlap (one tap, or a stride as large as the filter) without padding and groups",
    refuses=refuses,
    problems=problems,
    steps=steps,
    arranged=lambda problem, design: copied(problem),
    formerly="pointwise",
)
