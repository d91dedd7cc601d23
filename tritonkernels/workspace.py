"""Where blocks that share a row leave their partial sums, and the counters by which the last of them knows that it is.

The last block to arrive adds the partial sums up in the order of N, whichever block it is, so the bits are always the same; and
it leaves its counter at zero, as it found it. So counters are made once per stream, and calls on one stream, which run one
after the other, share them.
"""

import threading

import torch

from .plans import stream_of
from .watch import anew

AT_ONCE = 2**20  # counters that are made, and zeroed, together: 4 MB

_lock = threading.Lock()
_free = {}  # device -> counters that belong to nobody yet
_of_stream = {}  # (device, stream) -> the counters of its calls


def partial_sums(splits, sums, out):
    """(splits, sums) in the type of the sums, not initialised."""
    sum_type = torch.float64 if out.dtype == torch.float64 else torch.float32
    return torch.empty(splits, sums, dtype=sum_type, device=out.device)


def counters(count, out):
    """`count` int32 zeros that no call running beside this one has."""
    return anew(_counters, count, out.device)


def _counters(count, device):
    if device.type != "cuda":  # calls run in the caller's thread: any number at once
        return torch.zeros(count, dtype=torch.int32, device=device)
    key = (device, stream_of(device))
    with _lock:
        if torch.cuda.is_current_stream_capturing():  # a graph may be replayed on any stream, so it needs its own
            return _take(count, device)
        if key not in _of_stream or len(_of_stream[key]) < count:
            _of_stream[key] = _take(count, device)
        if len(_free[device]) < AT_ONCE // 2:  # so that the graphs of calls like this one find theirs zeroed
            _free[device] = _zeroed(AT_ONCE, device)
        return _of_stream[key][:count]


def _take(count, device):
    """Counters for good. A graph for which none are left zeroes its own, by a kernel at every replay."""
    if len(_free.get(device, ())) < count:
        if torch.cuda.is_current_stream_capturing():
            return torch.zeros(count, dtype=torch.int32, device=device)
        _free[device] = _zeroed(max(count, AT_ONCE), device)
    taken = _free[device][:count]
    _free[device] = _free[device][-(-count // 4) * 4 :]  # the next ones are aligned to 16 bytes: Triton compiles nothing anew
    return taken


def _zeroed(count, device):
    zeros = torch.zeros(count, dtype=torch.int32, device=device)
    torch.cuda.synchronize(device)  # other streams will use them
    return zeros
