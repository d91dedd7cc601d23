"""What is left of a call that was made before: allocate, fill in the addresses, launch.

All else that a call does (checks, Problem, Design, Config, strides, Triton's look-up of the compiled kernel) follows from what
`key_of` reads: its scalars, and what its tensors are but for their addresses, which count modulo ALIGNMENT. So a call that
comes the second time is watched on its way (watch.py): which tensors it makes, and where in its launches an address stands.
The next ones repeat that with addresses of their own. A plan holds no tensor. What cannot be repeated for certain goes the
whole way, every time.
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

ALIGNMENT = 16  # bytes: no design asks an address for more, nor does Triton
ROOM = 4096  # plans of a library; the oldest leaves first
WATCH = object()  # in place of a plan: make one when the call comes again

_TENSORS = (torch.Tensor, torch.nn.Parameter)  # of other classes a tensor may not be what it says
_PLAIN = (type(None), torch.dtype)
# 1 == 1.0 == True and 0.0 == -0.0, but these are not alike: told apart by their text
_NUMBERS = (int, float, bool, tuple, torch.Size)


@dataclass(frozen=True)
class Launched:
    """A launch that was done: function(*before, stream, *after, *values), with an address for each Tensor or Around."""

    function: Callable[..., Any]
    before: tuple
    after: tuple
    values: tuple
    keeps: Any = None  # what has to live as long as function


@dataclass(frozen=True)
class Around:
    """What a kernel takes in place of a tensor: build(its address); nothing else that goes into it varies."""

    tensor: torch.Tensor
    build: Callable[[int], Any]


class Place(NamedTuple):
    """Where among a launch's values an address stands: that of a slot, plus `offset` bytes."""

    index: int
    slot: int
    offset: int
    build: Callable[[int], Any] | None


@dataclass(frozen=True)
class Plan:
    """Slots are the tensors of the call, in its arguments' order, then those that it makes."""

    device: torch.device
    makes: tuple[Callable[[], torch.Tensor], ...]
    launches: tuple[tuple[Launched, tuple[Place, ...]], ...]
    result: int  # its slot
    spans: tuple[int, ...] | None  # bytes from each argument's address to its end, where the last of them is `out`

    def repeat(self, tensors):
        """The call's result; None, with nothing launched, where the call has to go the whole way."""
        addresses = [t.data_ptr() for t in tensors]
        if self.spans and _last_meets_another(addresses, self.spans):
            return None  # they may share no element even so
        with on_device(self.device):
            made = [make() for make in self.makes]
            for t in made:
                addresses.append(t.data_ptr())
                if addresses[-1] % ALIGNMENT:
                    return None
            stream = stream_of(self.device)
            for launched, places in self.launches:
                values = list(launched.values)
                for index, slot, offset, build in places:
                    address = addresses[slot] + offset
                    values[index] = build(address) if build else address
                launched.function(*launched.before, stream, *launched.after, *values)
        return (*tensors, *made)[self.result]


class Plans:
    """The plans of a library, by key. A call that comes but once is not watched: that takes as long as the call itself."""

    def __init__(self):
        self._plans, self._lock = {}, threading.Lock()

    def find(self, key):
        """The Plan, or WATCH at the second call of the key, or None."""
        if key is None or key in self._plans:
            return self._plans.get(key)
        self.keep(key, WATCH)
        return None

    def keep(self, key, plan):
        """`plan` is None where it is known that there is none."""
        with self._lock:
            if len(self._plans) >= ROOM and key not in self._plans:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = plan


def key_of(about, arguments):
    """(key, tensors among the arguments). The key is None where one of the arguments is not understood."""
    key, tensors = [about, torch.is_grad_enabled()], []
    try:
        for value in arguments:
            kind = type(value)
            if kind in _TENSORS:
                tensors.append(value)
                alignment = value.data_ptr() % ALIGNMENT
                flags = value.requires_grad, value.is_neg()
                key.append((value.shape, value.stride(), value.dtype, value.device, alignment, flags))
            elif kind in _PLAIN:
                key.append(value)
            elif kind in _NUMBERS:
                key.append((kind, repr(value)))
            elif kind is str and value == "torch":  # as a precision it follows torch's switches
                key.append((value, torch.get_float32_matmul_precision(), torch.backends.cudnn.conv.fp32_precision))
            elif kind is str:
                key.append(value)
            else:
                return None, tensors
    except RuntimeError:  # a tensor without strides or memory
        return None, tensors
    return tuple(key), tensors


def span_of(tensor):
    """Bytes from a tensor's address to its end."""
    if not tensor.numel():
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size()


def _last_meets_another(addresses, spans):
    start, end = addresses[-1], addresses[-1] + spans[-1]
    return any(address < end and start < address + span for address, span in zip(addresses[:-1], spans))


_HERE = contextlib.nullcontext()


def on_device(device):
    """Kernels go to the current device: make it the tensors'."""
    if device.type == "cuda" and device.index != torch._C._cuda_getDevice():  # what torch.cuda.current_device() asks, sooner
        return torch.cuda.device(device)
    return _HERE


def stream_of(device):
    """The handle of the device's current stream."""
    return torch._C._cuda_getCurrentRawStream(device.index) if device.type == "cuda" else 0
