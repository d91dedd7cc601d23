"""How a launch sees its tensors: where 128-bit loads begin, and strides that the compiler can tell to be aligned.

A row is read as `head` elements up to the first 16-byte boundary, then `vectors` of V elements, then what is left. That takes
contiguous rows whose pitch is a multiple of 16 bytes, so that all rows have one head; else V is 1, with nothing before or after
the vectors. Strides travel in units of V and are multiplied by it in the kernel: so the compiler knows that V divides them,
where Triton's own specialisation asks for a multiple of 16 elements.
"""

from dataclasses import dataclass

VECTOR_BYTES = 16


def full_vector(dtype):
    """Elements in 128 bits."""
    return VECTOR_BYTES // dtype.itemsize


def _has_pitch(t, multiple):
    """Contiguous along the last dimension, and all other strides that count are multiples of `multiple`."""
    pitches = [stride for size, stride in zip(t.shape[:-1], t.stride()[:-1]) if size > 1]
    return t.stride(-1) == 1 and all(pitch % multiple == 0 for pitch in pitches)


@dataclass(frozen=True)
class Cut:
    """The last dimension of `a`, cut into head, vectors of `width` and tail; `size` counts from after the head."""

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
    return uncut(a)


def uncut(a):
    """The Cut into single elements."""
    return Cut(1, 0, a.shape[-1], a.shape[-1])


def arguments(problem, a, x, y, scale, out, pieces):
    """What every kernel takes; `pieces` is the Cut of A's rows. A and x are passed from after the head on."""
    body, x_body = a[..., pieces.head :], x[..., pieces.head :]
    width = pieces.width
    x_width = width if x_body.data_ptr() % VECTOR_BYTES == 0 and _has_pitch(x_body, width) else 1
    return {
        "a_ptr": body,
        "x_ptr": x_body,
        **results(problem, y, scale, out),
        "head": pieces.head,
        "vectors": pieces.vectors,
        "size": pieces.size,
        "stride_ab": a.stride(0) // width if a.shape[0] > 1 else 0,
        "stride_am": a.stride(1) // width if a.shape[1] > 1 else 0,
        "stride_an": a.stride(2),
        "stride_xb": x.stride(0) // x_width if x.shape[0] > 1 else 0,
        "stride_x": x.stride(1),
        "V": width,
        "XV": x_width,
        "HEAD": pieces.head > 0,
        "TAIL": pieces.vectors * width < pieces.size,
        "BATCHED": a.shape[0] > 1,
        "WIDE": problem.wide,
    }


def results(problem, y, scale, out):
    """The part of the arguments that the end of every kernel takes."""
    return {
        "y_ptr": y,
        "scale_ptr": scale,
        "out_ptr": out,
        "rows": out.shape[0] * out.shape[1],
        "M": out.shape[1],
        "alpha": problem.alpha,
        "beta": problem.beta,
        "stride_yb": 0 if y is None else y.stride(0),
        "stride_y": 0 if y is None else y.stride(1),
        "stride_s": 0 if scale is None else scale.stride(0),
        "stride_ob": out.stride(0),
        "stride_o": out.stride(1),
        "HAS_Y": y is not None,
        "HAS_SCALE": scale is not None,
    }
