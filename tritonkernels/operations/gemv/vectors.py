"""Where 128-bit loads may begin: a row is `head` elements up to the first 16-byte boundary, whole vectors, and the rest.

That takes contiguous rows whose pitch is a multiple of 16 bytes, so that all rows have the same head; else a "vector" is one
element, with nothing before or after.
"""

from dataclasses import dataclass

VECTOR_BYTES = 16


def full_vector(dtype):
    """Elements in 128 bits."""
    return VECTOR_BYTES // dtype.itemsize


@dataclass(frozen=True)
class Cut:
    """The last dimension of a tensor, cut into head, vectors of `width` and tail; `size` counts from after the head."""

    width: int
    head: int
    vectors: int
    size: int


def cut(a, may_have_head=True):
    """The Cut of a tensor's rows by what its address and pitches allow."""
    width, n = full_vector(a.dtype), a.shape[-1]
    head = -a.data_ptr() % VECTOR_BYTES // a.dtype.itemsize
    fits = n - head >= width and (may_have_head or (head == 0 and n % width == 0))
    if fits and a.numel() and _has_pitch(a, width):
        return Cut(width, head, (n - head) // width, n - head)
    return Cut(1, 0, n, n)  # single elements


def width_of(x, width):
    """The elements of x in a load, for a matrix's vectors of `width`: as many where x is aligned for it, else 1."""
    return width if x.data_ptr() % VECTOR_BYTES == 0 and _has_pitch(x, width) else 1


def pitch(t, dim, width):
    """The stride of a dimension in vectors. Kernels multiply it by their width: so the compiler knows that this divides it,
    where Triton's own specialisation asks for a multiple of 16 elements."""
    return t.stride(dim) // width if t.shape[dim] > 1 else 0


def _has_pitch(t, multiple):
    """Contiguous along the last dimension, and all other strides that count are multiples of `multiple`."""
    pitches = [stride for size, stride in zip(t.shape[:-1], t.stride()[:-1]) if size > 1]
    return t.stride(-1) == 1 and all(stride % multiple == 0 for stride in pitches)
