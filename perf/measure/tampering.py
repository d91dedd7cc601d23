"""What a contender has done to the measurement itself: functions that it replaced, the current stream, L2 set aside."""

import ctypes
import inspect
import time

import torch

from tritonkernels import numerics
from tritonkernels.choice.clock import GpuClock

from .check import Checker, Output

WATCHED = {
    "torch.cuda": (torch.cuda, "Event CUDAGraph synchronize current_stream stream"),
    "torch.cuda.Event": (torch.cuda.Event, "record query elapsed_time synchronize"),
    "torch.cuda.CUDAGraph": (torch.cuda.CUDAGraph, "replay capture_begin capture_end"),
    "time": (time, "perf_counter"),
    "GpuClock": (GpuClock, "now flush event synchronize replay"),
    "Output": (Output, "poison copy left escaped"),
    "Checker": (Checker, "judge verdict restore"),
    "numerics": (numerics, "Expected"),
    "Expected": (numerics.Expected, "judge"),
}
PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE


class Watch:
    """Knows how things were when it was made."""

    def __init__(self, device):
        self._device = device
        self._stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        if self._stream:
            torch.cuda.synchronize(device)  # makes the context, in which 11 MB of an H200's L2 are set aside to begin with
            _set_aside()
        places = [(label, owner, name) for label, (owner, names) in WATCHED.items() for name in names.split()]
        self._originals = [(*place, inspect.getattr_static(*place[1:])) for place in places]

    def undo(self):
        """What has changed since, in words; None if nothing. All of it is undone."""
        found = [f"it replaced {name}" for name in self._replaced()]
        if self._stream:
            found += self._on_the_gpu()
        return ", ".join(found) or None

    def _replaced(self):
        for label, owner, name, original in self._originals:
            if inspect.getattr_static(owner, name) is not original:
                setattr(owner, name, original)
                yield f"{label}.{name}"

    def _on_the_gpu(self):
        if torch.cuda.current_stream(self._device) != self._stream:
            torch.cuda.set_stream(self._stream)
            yield "it left another stream the current one"
        if size := _set_aside():
            yield f"it set {size} bytes of L2 aside, for data that outlives the flush"


def _set_aside():
    """Bytes of L2 for persisting accesses. Afterwards there are none, and no such data."""
    if not torch.version.cuda:
        return 0
    driver, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
    driver.cuCtxGetLimit(ctypes.byref(size), PERSISTING_L2)  # it leaves 0 where the GPU has no such thing
    if size.value:
        driver.cuCtxResetPersistingL2Cache()
        driver.cuCtxSetLimit(PERSISTING_L2, ctypes.c_size_t(0))
    return size.value
