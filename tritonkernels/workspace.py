"""The workspace of blocks that share a row: their partial sums, and counters of the blocks that have arrived.

The last block to arrive adds the partial sums up in the order of N, whichever block it is, so the bits are always the same. It
resets its counter to zero. So counters are made once per stream and shared by its calls, which run one after the other.
"""

import threading

import torch

from .plans import stream_of
from .watch import fresh

AT_ONCE = 2**20  # counters that are allocated and zeroed together: 4 MB

_lock = threading.Lock()
_free = {}  # device -> counters not in use yet
_of_stream = {}  # (device, stream) -> the counters of its calls
_allocated = []  # all counters, for good: a graph that uses some knows their address only, and nobody knows when it is gone


def partial_sums(splits, sums, out):
    """An uninitialised (splits, sums) tensor in the type of the sums."""
    sum_type = out.dtype if out.dtype in (torch.float64, torch.int32) else torch.float32
    return torch.empty(splits, sums, dtype=sum_type, device=out.device)


def counters(count, out):
    """`count` int32 zeros that no concurrent call uses."""
    return fresh(_counters, count, out.device)


def _counters(count, device):
    if device.type != "cuda":  # calls run in the caller's thread, any number concurrently
        return torch.zeros(count, dtype=torch.int32, device=device)
    key = (device, stream_of(device))
    with _lock:
        if torch.cuda.is_current_stream_capturing():  # a graph may be replayed on any stream, so it needs its own
            return _take(count, device)
        if key not in _of_stream or len(_of_stream[key]) < count:
            _of_stream[key] = _take(count, device)
        if len(_free[device]) < AT_ONCE // 2:  # so that graphs of such calls get zeroed counters
            _free[device] = _zeroed(AT_ONCE, device)
        return _of_stream[key][:count]


def _take(count, device):
    """Take counters out of the free ones. If none are left, a graph zeroes its own with a kernel at every replay."""
    if device not in _free or len(_free[device]) < count:
        if torch.cuda.is_current_stream_capturing():
            return torch.zeros(count, dtype=torch.int32, device=device)
        _free[device] = _zeroed(max(count, AT_ONCE), device)
    taken = _free[device][:count]
    _free[device] = _free[device][-(-count // 4) * 4 :]  # keeps 16-byte alignment, on which Triton's compilation depends
    return taken


def _zeroed(count, device):
    zeros = torch.zeros(count, dtype=torch.int32, device=device)
    torch.cuda.synchronize(device)  # other streams will use them
    _allocated.append(zeros)
    return zeros
