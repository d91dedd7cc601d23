"""Split: the planes of a B that is multiplied often, such as the weight of a linear layer, made once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor

from ... import validate
from ...batches import uniform_batches
from ...errors import ArgumentError, DtypeError, GradientError
from ...numerics import MODES
from ...plans import is_plain, on_device
from ...problem import bound_idle_strides
from .schemes import SCHEMES, apart, side_by_side

AGAIN = "Call split() again."


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """The planes of a float32 tensor, made by `split`. `matmul` takes it in place of B, in the same precision.

    tensor     the tensor itself, which must not change any more
    precision  the mode that it was split for
    planes     (..., N, planes of a column one after the other), each K long, padded with zeros to a multiple of 64
    ranges     (..., 3, N), of which the modes with scaled columns make scales and refusals; else None
    """

    tensor: torch.Tensor
    precision: str
    planes: torch.Tensor
    ranges: torch.Tensor | None
    _state: tuple[Any, ...]
    _memory: torch.UntypedStorage  # kept, so that no other tensor gets its address

    @property
    def shape(self) -> torch.Size:
        return self.tensor.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.tensor.dtype

    @property
    def device(self) -> torch.device:
        return self.tensor.device

    @property
    def nbytes(self) -> int:
        """The bytes of planes and ranges, without those of the tensor."""
        return sum(t.nbytes for t in (self.planes, self.ranges) if t is not None)

    def stride(self) -> Sequence[int]:
        """The strides of the tensor."""
        return self.tensor.stride()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, deep or from a file, is a Split of the copied tensor: one that has changed since has a copy that has, too."""
        has_changed = _state_of(self.tensor) != self._state
        return _copy, (self.tensor, self.precision, self.planes, self.ranges, has_changed)

    def __repr__(self) -> str:
        return f"Split({tuple(self.shape)}, precision={self.precision!r}, device={str(self.device)!r}, nbytes={self.nbytes})"


def _copy(tensor, precision, planes, ranges, has_changed):
    state = () if has_changed else _state_of(tensor)
    return Split(tensor, precision, planes, ranges, state, tensor.untyped_storage())


def make(library, b, precision, launches):
    """A Split of B. launches(matrices (batch, N, K), planes, ranges, precision) fill planes, as in schemes.room."""
    validate.tensor("b", b, dtypes=(torch.float32,), ranks=range(2, 65))
    library.runs_on(b)
    if not is_plain(b) or is_functorch_wrapped_tensor(b):
        kind = "a tensor inside a transform of torch.func" if is_functorch_wrapped_tensor(b) else type(b).__name__
        raise DtypeError("b", kind, "a torch.Tensor with memory of its own", "Split it before, outside of what wraps it.")
    if b.is_inference():
        remedy = "Make it outside torch.inference_mode(); the products may be inside."
        raise ArgumentError("b", "an inference tensor", "a tensor that counts its changes", remedy)
    if precision not in (*SCHEMES,):
        raise validate.out_of_choices("precision", precision, (*SCHEMES,), MODES)
    library.get_ready()
    with on_device(b.device):
        columns = bound_idle_strides(b.detach().resolve_neg()).mT
        scheme, (of_planes, of_ranges) = SCHEMES[precision], side_by_side(columns, precision)
        room = torch.empty if b.numel() else torch.zeros  # of no rows of B: columns are padded with zeros alone
        planes = room(of_planes, dtype=scheme.dtype, device=b.device)
        ranges = None if of_ranges is None else torch.zeros(of_ranges, dtype=torch.int32, device=b.device)
        given = (columns, planes) if ranges is None else (columns, planes, ranges)
        for matrices, of_part, *ranges_of_part in uniform_batches(*given) if b.numel() else ():
            for launch in launches(matrices, apart(of_part, precision), next(iter(ranges_of_part), None), precision):
                launch.run()
    return Split(b, precision, planes, ranges, _state_of(b), b.untyped_storage())


def _state_of(tensor):
    """What differs after a change: in place, or of where it is and lies. Torch counts no writes through .data or .numpy()."""
    return tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride()


def is_of(split, tensor):
    """Whether a Split is that of the tensor as it is now."""
    return _state_of(tensor) == split._state


def unpacked(b, precision):
    """(B, precision, the operator's arguments of its planes) of a user's B, which may be a Split."""
    if not isinstance(b, Split):
        return b, precision, _NO_PLANES
    if precision not in (None, b.precision):
        raise ArgumentError("precision", repr(precision), f"{b.precision!r}, for which b was split", AGAIN)
    tensor = b.tensor
    if not torch.compiler.is_compiling() and not is_of(b, tensor):
        raise ArgumentError("b", "a Split of a tensor that has changed since", "one of the tensor as it is", AGAIN)
    if tensor.requires_grad and torch.is_grad_enabled():
        allowed = "one of a tensor without gradients: weights that are trained change, and a Split does not"
        raise GradientError("b", "a Split of a tensor with requires_grad=True", allowed, "Use torch.no_grad(), or no Split.")
    return tensor, b.precision, {"b_planes": b.planes, "b_ranges": b.ranges}


_NO_PLANES = {"b_planes": None, "b_ranges": None}


def unpacked_call(args, kwargs):
    """A user's arguments of matmul as the operation's."""
    given = dict(zip(("a", "b"), args)) | kwargs
    if not isinstance(given.get("b"), Split):
        return args, kwargs
    b, precision, planes = unpacked(given.pop("b"), kwargs.get("precision"))
    return (given.pop("a"), b), given | planes | {"precision": precision}


def check_planes(b, precision, b_planes, b_ranges):
    """Refuse what are no planes of a tensor like B: an operator of torch takes any tensors."""
    shapes = side_by_side(b.mT, precision) if precision in SCHEMES and b.ndim > 1 else (None, None)
    dtypes = SCHEMES[precision].dtype if precision in SCHEMES else None, torch.int32
    for name, t, shape, dtype in zip(("b_planes", "b_ranges"), (b_planes, b_ranges), shapes, dtypes):
        given = None if t is None else (tuple(t.shape), t.dtype, t.device, t.is_contiguous())
        if given != (None if shape is None else (shape, dtype, b.device, True)):
            raise ArgumentError(name, "another tensor", f"what split() makes of b in {precision}", "Pass a Split as b.")
