"""Tensors whose memory ends, or begins, at an unreadable page: any access past that end is an immediate fault, in any
kernel."""

import ctypes
import faulthandler
import mmap
import os

import torch

PAGE = mmap.PAGESIZE
PROT_NONE, PROT_READ = 0, 1
_libc = ctypes.CDLL(None, use_errno=True)


def guarded(t, side, read_only):
    """A copy of t with its strides, next to an unreadable page at its "end" or its "start".

    The rest of its pages is 0xFF, a NaN in every floating type. With read_only a write to it is a fault too.
    """
    span = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride())) + 1 if t.numel() else 0
    size = span * t.element_size()
    pages = max(1, -(-size // PAGE)) * PAGE
    memory = mmap.mmap(-1, pages + 2 * PAGE)
    memory[PAGE : PAGE + pages] = b"\xff" * pages
    offset = PAGE if side == "start" else PAGE + pages - size
    if span:
        flat = torch.frombuffer(memory, dtype=t.dtype, count=span, offset=offset)
        copy = flat.as_strided(t.shape, t.stride())
        copy.copy_(t)
    else:
        copy = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    _protect(address, PAGE, PROT_NONE)
    _protect(address + PAGE + pages, PAGE, PROT_NONE)
    if read_only:
        _protect(address + PAGE, pages, PROT_READ)
    return copy


def end_of(work):
    """The exit status of a fork that does it."""
    pid = os.fork()
    if pid == 0:
        try:
            faulthandler.disable()  # pytest's, which would tell of the fault
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _protect(address, size, protection):
    if _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
