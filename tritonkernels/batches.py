"""Batches of matrices in the form that kernels take: one stride from matrix to matrix."""

import itertools
import math

from .problem import holds, is_known


def uniform_batches(*tensors):
    """Split tensors of one batch shape into parts of rank 3, each with a single batch stride (usually one part).

    Neighbouring batch dimensions merge where, in every tensor, the outer stride is the inner one times the inner size.
    Dimensions that cannot merge, as (2, 1) broadcast against (1, 3), become separate views; nothing is copied.
    """
    if not all(map(is_known, tensors[0].shape[:-2])) or 0 in tensors[0].shape[:-2]:  # of symbols nothing is launched
        return
    ones = [dim for dim, size in enumerate(tensors[0].shape[:-2]) if size == 1]  # they would hide what is on either side
    tensors = [t.squeeze(ones) for t in tensors]
    shape = tensors[0].shape[:-2]
    if not shape:
        yield tuple(t[None] for t in tensors)
        return
    outer = len(shape) - 1  # batch dimensions from here on merge into one
    while outer > 0 and all(merges(t, outer - 1) for t in tensors):
        outer -= 1
    for index in itertools.product(*map(range, shape[:outer])):
        yield tuple(_merge(t[index]) for t in tensors)


def merges(t, dim):
    """Whether a dimension and the next one can become one without moving data."""
    outer, inner = t.shape[dim : dim + 2]
    return holds(outer == 1) or holds(inner == 1) or holds(t.stride(dim) == t.stride(dim + 1) * inner)


def _merge(t):
    """Batch dimensions of one common stride as a single one."""
    sizes, strides = t.shape[:-2], t.stride()[:-2]
    stride = min((s for size, s in zip(sizes, strides) if size > 1), default=0)
    return t.as_strided((math.prod(sizes), *t.shape[-2:]), (stride, *t.stride()[-2:]), t.storage_offset())
