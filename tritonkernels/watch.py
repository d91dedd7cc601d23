"""Watch a call go the whole way, and make a Plan of it.

Which tensor an address in a launch belongs to is told by the memory that it lies in: one of the call's tensors', or one's that
the call made. No plan comes of a call whose own tensors meet in memory, that does more to tensors than to make empty ones and
to look at parts of them, or that launches what no Launched describes.
"""

import dataclasses
import functools
import itertools
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .plans import ALIGNMENT, Around, Place, Plan, span_of

_EMPTY = ("aten::empty.memory_format", "aten::empty_strided", "aten::new_empty")

_in_thread = threading.local()


def anew(make, *args):
    """make(*args): a tensor that each repetition has to ask for again, whatever `make` does; zeros that a stream owns, say."""
    watch = getattr(_in_thread, "watch", None)
    return make(*args) if watch is None else watch.anew(functools.partial(make, *args))


class Watch(TorchDispatchMode):
    def __init__(self, tensors):
        super().__init__()
        self._given = len(tensors)
        self._slots = [(t, None) for t in tensors]  # (tensor, how to make it); held, so that their memory stays theirs
        self._launches, self._asking = [], False
        ranges = sorted((t.data_ptr(), t.data_ptr() + span_of(t)) for t in tensors if t.numel())
        self.tells_apart = all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))
        self._repeatable = True

    def __enter__(self):
        _in_thread.watch = self
        return super().__enter__()

    def __exit__(self, *exception):
        _in_thread.watch = None
        return super().__exit__(*exception)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if self._asking or func.is_view:
            return result
        if func.name() in _EMPTY:
            like = {"dtype": result.dtype, "device": result.device}
            self._slots.append((result, functools.partial(torch.empty_strided, result.shape, result.stride(), **like)))
        else:
            self._repeatable = False
        return result

    def anew(self, make):
        self._asking = True
        try:
            tensor = make()
        finally:
            self._asking = False
        self._slots.append((tensor, make))
        return tensor

    def saw(self, launched):
        """A launch was done: the Launched, or None where there is none for it."""
        if launched is None:
            self._repeatable = False
            return
        values, places = list(launched.values), []
        for index, value in enumerate(values):
            tensor, build = (value.tensor, value.build) if isinstance(value, Around) else (value, None)
            if not isinstance(tensor, torch.Tensor):
                continue
            values[index] = build(0) if build else 0  # what an empty tensor is to a kernel
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

    def plan(self, result, has_out):
        """The Plan of the call that returned `result`; None where there is none."""
        home = [slot for slot, (t, make) in enumerate(self._slots) if t is result or (make and _are_one(t, result))]
        if not (self._repeatable and home):
            return None
        launched_on = {place.slot for _, places in self._launches for place in places}
        kept = [*range(self._given), *(s for s in range(self._given, len(self._slots)) if s in {*home, *launched_on})]
        if any(self._slots[slot][0].data_ptr() % ALIGNMENT for slot in kept[self._given :]):
            return None
        moved = {old: new for new, old in enumerate(kept)}
        return Plan(
            device=result.device,
            makes=tuple(self._slots[slot][1] for slot in kept[self._given :]),
            launches=tuple((done, tuple(p._replace(slot=moved[p.slot]) for p in places)) for done, places in self._launches),
            result=moved[home[0]],
            spans=tuple(span_of(t) for t, _ in self._slots[: self._given]) if has_out else None,
        )


def _are_one(made, tensor):
    """Whether two tensors, of which the first was made by the call, are the same (torch may wrap what it returns anew)."""
    return (made.data_ptr(), made.shape, made.stride(), made.dtype) == (
        tensor.data_ptr(),
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
    )
