"""Plans of repeated calls: allocate, fill in the addresses, launch.

Everything else in a call (checks, Problem, Design, Config, strides, Triton's look-up of the compiled kernel) depends only on
what `key_of` reads: scalars, and the tensors' properties, with their addresses modulo ALIGNMENT. So the second call with a key
is watched (watch.py): which tensors it makes, and where its launches use an address. Later calls repeat the launches with their
own addresses. A plan holds no tensor. A call that cannot be repeated safely always takes the full path.
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from . import switches

ALIGNMENT = 16  # bytes: neither designs nor Triton depend on more
ROOM = 4096  # plans of a library; the oldest is dropped first
WATCH = object()  # in place of a plan: the call was made once, so the next one is watched

_TENSORS = (torch.Tensor, torch.nn.Parameter)  # tensors of other classes may not have the properties that they report
_PLAIN = (type(None), torch.dtype, torch.memory_format)
# the key has their text, since (1,) == (1.0,) == (True,) and 0.0 == -0.0; it takes longer than a number
_NUMBERS = (int, float, bool, tuple, torch.Size)
_OF_CONFIGS = (int, bool, str, type(None))


@dataclass(frozen=True)
class Launched:
    """A finished launch: function(*before, stream, *after, *values), with an address for each Tensor or FromAddress."""

    function: Callable[..., Any]
    before: tuple
    after: tuple
    values: tuple
    keeps: Any = None  # must live as long as function
    is_pure: bool = True  # what the kernel gets follows from these arguments alone
    overlaps: bool = False  # it may begin while the kernel before it runs, for which it waits


@dataclass(frozen=True)
class FromAddress:
    """A kernel argument made from a tensor's address by `build`, such as a TMA descriptor."""

    tensor: torch.Tensor
    build: Callable[[int], Any]


def with_address(rest, address):
    """A struct of an operand, whose other fields are `rest`."""
    return address, *rest


class Place(NamedTuple):
    """The position of an address among a launch's values: the slot's address plus `offset` bytes."""

    index: int
    slot: int
    offset: int
    build: Callable[[int], Any] | None


@dataclass
class Plan:
    """Slots are the tensors among the call's arguments, in order, then those that it makes."""

    device: torch.device
    makes: tuple[Callable[[], torch.Tensor], ...]
    launches: tuple[tuple[Launched, tuple[Place, ...]], ...]
    result: int  # the result's slot
    spans: tuple[int, ...] | None  # bytes from each argument's address to its end, if the last one is `out`; 0 if it is `out`
    taught: int | None = None  # native/repeat.cpp was asked to repeat such calls, after it had forgotten all so often

    def repeat(self, tensors):
        """The call's result; None, with nothing launched, if the call must take the full path."""
        addresses = [t.data_ptr() for t in tensors]
        if self.spans and _out_overlaps(addresses, self.spans):
            return None  # they may still share no element: validate.result decides
        with on_device(self.device):
            fresh = [make() for make in self.makes]
            for t in fresh:
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
        return (*tensors, *fresh)[self.result]


class Plans:
    """The plans of a library, by key. A call made only once is not watched, which would double its time."""

    def __init__(self):
        self._plans, self._lock = {}, threading.Lock()

    def find(self, key):
        """The Plan, or WATCH at the second call of the key, or None."""
        if key is None or key in self._plans:
            return self._plans.get(key)
        self.keep(key, WATCH)
        return None

    def keep(self, key, plan):
        """`plan` is None for a call that has no plan."""
        with self._lock:
            if len(self._plans) >= ROOM and key not in self._plans:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = plan


def key_of(about, arguments):
    """(key, tensors among the arguments). The key is None if the type of an argument is unknown. It is not about autograd.

    The last argument is `out`: the key says which of the others begin there, as an addend may.
    """
    key, tensors, addresses = [about], [], []
    try:
        for value in arguments:
            kind = type(value)
            if kind in _TENSORS:
                tensors.append(value)
                if not (address := value.data_ptr()) and value.numel():  # torch's zeros without memory
                    return None, tensors
                addresses.append(address)
                alignment = address % ALIGNMENT
                key.append((value.shape, value.stride(), value.dtype, value.device, alignment, value.is_neg()))
            elif kind in _PLAIN:
                key.append(value)
            elif kind is float and value and value == value:
                key.append((kind, value))
            elif kind in _NUMBERS or (kind is dict and _is_config(value)):
                key.append((kind, repr(value)))
            elif kind is str and value == "torch":  # this precision follows torch's switches
                key.append((value, switches.now()))
            elif kind is str:
                key.append(value)
            else:
                return None, tensors
        if kind in _TENSORS:
            key.append(tuple(own == address for own in addresses))
    except (RuntimeError, ValueError):  # a tensor without strides or memory; an int of too many digits for a text
        return None, tensors
    return tuple(key), tensors


def _is_config(value):
    """Whether a dict's text says all of it, as that of a config's numbers does."""
    return all(type(name) is str and type(own) in _OF_CONFIGS for name, own in value.items())


def is_plain(value):
    """Whether it is no tensor, or one whose memory kernels may read: of torch's own class, and with memory."""
    kind = type(value)
    return not (value.is_meta or value._is_zerotensor()) if kind in _TENSORS else not hasattr(kind, "__torch_function__")


def span_of(tensor):
    """Bytes from a tensor's address to its end."""
    if not tensor.numel():
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size()


def _out_overlaps(addresses, spans):
    start, end = addresses[-1], addresses[-1] + spans[-1]
    return any(address < end and start < address + span for address, span in zip(addresses[:-1], spans))


_SAME_DEVICE = contextlib.nullcontext()


def on_device(device):
    """A context in which the tensors' device is current, since kernels are launched there."""
    if device.type == "cuda" and device.index != torch._C._cuda_getDevice():  # a faster torch.cuda.current_device()
        return torch.cuda.device(device)
    return _SAME_DEVICE


def stream_of(device):
    """The handle of the device's current stream."""
    return torch._C._cuda_getCurrentRawStream(device.index) if device.type == "cuda" else 0
