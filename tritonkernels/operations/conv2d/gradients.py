"""Checks of arguments, shared by the gradients of a convolution."""

import numbers

import torch

from ... import validate
from ...errors import ShapeError
from ...problem import differ, holds


def size_of(argument, value, ranks):
    """The tuple of a size argument: a tuple, a list or a torch.Size of ints, none negative."""
    sizes = isinstance(value, (tuple, list)) and tuple(v if isinstance(v, torch.SymInt) else _whole(v) for v in value)
    if sizes is False or any(v is None or holds(v < 0) for v in sizes):
        raise ShapeError(argument, validate.shown(value), "a sequence of ints, at least 0", "Pass a tensor's .shape.")
    if len(value) not in ranks:
        raise ShapeError(
            argument, repr(tuple(value)), "a size of rank " + " or ".join(map(str, ranks)), "Pass a tensor's .shape."
        )
    return validate.allocatable(sizes, argument)


def _whole(value):
    """An int, also of numpy's; None of another thing."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        return None
    return value if isinstance(value, int) else int(value)


def check_grad_output(grad_output, sizes, unbatched):
    """Checks that grad_output has the shape of the convolution's result."""
    wanted = tuple(sizes[name] for name in ("kpq" if unbatched else "nkpq"))
    if any(map(differ, grad_output.shape, wanted)):
        allowed = f"{wanted}, the shape of the convolution's result"
        remedy = "Pass the stride, padding and dilation of that convolution."
        raise ShapeError("grad_output", f"shape {tuple(grad_output.shape)}", allowed, remedy)


def batched(t):
    return t if t.ndim == 4 else t[None]
