"""Watches a call on the full path, and makes a Plan of it.

An address in a launch is assigned to the tensor that contains it, one of the call's arguments or one that the call made. So
operands that overlap in memory, as x and x.T, are copied for the watched call (apart). There is no plan for a call that does
more with tensors than allocate them and take views, or that has a launch without a Launched.
"""

import dataclasses
import functools
import itertools
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .plans import ALIGNMENT, FromAddress, Place, Plan, span_of

_EMPTY = ("aten::empty.memory_format", "aten::empty_strided", "aten::new_empty")

COPIED = 2**28  # bytes of a call's operands that are copied at most: a call of more takes longer than its full path

_in_thread = threading.local()


def fresh(make, *args):
    """make(*args), a tensor for which every repeated call runs `make` again, such as the zeroed counters of a stream."""
    watch = getattr(_in_thread, "watch", None)
    return make(*args) if watch is None else watch.fresh(functools.partial(make, *args))


def apart(arguments):
    """A call's arguments, by name, with copies of its operands if these overlap. As they are if `out` overlaps one of them but
    at its own address, which may be an error, and if the copies would be large."""
    out = arguments["out"]
    operands = {name: t for name, t in arguments.items() if isinstance(t, torch.Tensor) and not _is_at(t, out) and t.numel()}
    tensors = list(operands.values())
    with_out = [not are_disjoint([t, out]) for t in tensors if isinstance(out, torch.Tensor)]
    if are_disjoint(tensors) or any(with_out) or sum(map(span_of, tensors)) > COPIED or any(t.is_neg() for t in tensors):
        return arguments
    return arguments | {name: _copy(t) for name, t in operands.items()}


def _is_at(tensor, out):
    """Whether an operand begins where `out` does, as an addend that is overwritten. The key of a call says so (plans.py)."""
    return isinstance(out, torch.Tensor) and tensor.data_ptr() == out.data_ptr()


def are_disjoint(tensors):
    """Whether no two of the tensors overlap in memory."""
    ranges = sorted((t.data_ptr(), t.data_ptr() + span_of(t)) for t in tensors if t.numel())
    return all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))


def _copy(tensor):
    """The same elements with the same strides, at an address with the same alignment."""
    size, span = tensor.element_size(), span_of(tensor)
    memory = torch.empty(span + ALIGNMENT, dtype=torch.uint8, device=tensor.device)
    start = (tensor.data_ptr() - memory.data_ptr()) % ALIGNMENT
    copied = memory[start : start + span].view(tensor.dtype)
    copied.copy_(tensor.detach().as_strided((span // size,), (1,)))
    return copied.as_strided(tensor.shape, tensor.stride())


class Watch(TorchDispatchMode):
    def __init__(self, tensors, out=None):
        """Watch a call of these tensors; `out` is the last of them, if there is one."""
        super().__init__()
        self._given = len(tensors)
        overwritten = [out is not None and _is_at(t, out) for t in tensors[:-1]] + [False]
        spans = tuple(0 if is_out else span_of(t) for is_out, t in zip(overwritten, tensors))
        self._spans = None if out is None else spans
        self._slots = [(t, None) for t in tensors]  # (tensor, how to make it); held so that their memory is not reused
        self._launches, self._making = [], False
        self.disjoint = are_disjoint([t for is_out, t in zip(overwritten, tensors) if not is_out])
        self._repeatable = True

    @classmethod
    def _should_skip_dynamo(cls):
        """Avoids torch's wrapper of __torch_dispatch__, which imports the compiler, for seconds. Nothing traces a Watch."""
        return False

    def __enter__(self):
        _in_thread.watch = self
        return super().__enter__()

    def __exit__(self, *exception):
        _in_thread.watch = None
        return super().__exit__(*exception)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if self._making or func.is_view:
            return result
        if func.name() in _EMPTY:
            like = {"dtype": result.dtype, "device": result.device}
            self._slots.append((result, functools.partial(torch.empty_strided, result.shape, result.stride(), **like)))
        else:
            self._repeatable = False
        return result

    def fresh(self, make):
        self._making = True
        try:
            tensor = make()
        finally:
            self._making = False
        self._slots.append((tensor, make))
        return tensor

    def add_launch(self, launched):
        """Record a launch: its Launched, or None if it cannot be repeated."""
        if launched is None:
            self._repeatable = False
            return
        values, places = list(launched.values), []
        for index, value in enumerate(values):
            tensor, build = (value.tensor, value.build) if isinstance(value, FromAddress) else (value, None)
            if not isinstance(tensor, torch.Tensor):
                continue
            values[index] = build(0) if build else 0  # an empty tensor's value
            if tensor.data_ptr():
                places.append(Place(index, *self._slot_and_offset(tensor), build))
        self._launches.append((dataclasses.replace(launched, values=tuple(values)), tuple(places)))

    def _slot_and_offset(self, tensor):
        for slot, (whole, _) in enumerate(self._slots):
            offset = tensor.data_ptr() - whole.data_ptr()
            if offset >= 0 and offset + span_of(tensor) <= span_of(whole):
                return slot, offset
        self._repeatable = False
        return 0, 0

    def plan(self, result):
        """The Plan of the call that returned `result`, or None if it cannot be repeated."""
        result_slots = [slot for slot, (t, make) in enumerate(self._slots) if t is result or (make and _same_tensor(t, result))]
        if not (self._repeatable and result_slots):
            return None
        operand_slots = {place.slot for _, places in self._launches for place in places}
        slots = [
            *range(self._given),
            *(s for s in range(self._given, len(self._slots)) if s in {*result_slots, *operand_slots}),
        ]
        if any(self._slots[slot][0].data_ptr() % ALIGNMENT for slot in slots[self._given :]):
            return None
        new_slot = {old: new for new, old in enumerate(slots)}
        return Plan(
            device=result.device,
            makes=tuple(self._slots[slot][1] for slot in slots[self._given :]),
            launches=tuple((done, tuple(p._replace(slot=new_slot[p.slot]) for p in places)) for done, places in self._launches),
            result=new_slot[result_slots[0]],
            spans=self._spans,
        )


def _same_tensor(first, second):
    """Whether two tensors are the same (torch may wrap a returned tensor again)."""
    return (first.data_ptr(), first.shape, first.stride(), first.dtype) == (
        second.data_ptr(),
        second.shape,
        second.stride(),
        second.dtype,
    )
