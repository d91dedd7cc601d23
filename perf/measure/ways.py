"""All of torch's ways to compute a call: the baselines, and those that take seconds to find.

cuDNN's search times few runs of each algorithm and settles on another one from time to time. torch keeps what it has found per
thread, so a thread of its own makes a search of its own. torch.compile tunes a kernel for each size.
"""

import functools
from concurrent.futures import ThreadPoolExecutor

import torch

from tritonkernels.errors import UnsupportedError

from .baselines import BASELINES
from .peers.torch_compile import compiled

SEARCHES = 3  # of cuDNN, that of the main thread among them


@functools.cache
def _thread(number):
    return ThreadPoolExecutor(1, f"search-{number}")


def searched_by(number, call):
    """The call made by a thread of its own, on the caller's stream, so that a graph which is captured there has it, too."""

    def in_its_thread(stream, *args, **kwargs):
        with torch.cuda.stream(stream):
            return call(*args, **kwargs)

    def elsewhere(*args, **kwargs):
        if not torch.cuda.is_available():
            raise UnsupportedError("cuDNN searches on GPUs")
        return _thread(number).submit(in_its_thread, torch.cuda.current_stream(), *args, **kwargs).result()

    return elsewhere


def _mv(a, x):
    return torch.mv(a, x) if a.ndim == 2 else torch.bmm(a, x[..., None])[..., 0]


_tuned = {}  # that of the last size: torch keeps few variants of a function


def compiled_gemv(a, x, y=None, *, alpha=1.0, beta=None, scale=None, out):
    if a.device.type != "cuda" or y is not None or scale is not None or alpha != 1:
        raise UnsupportedError("torch.compile's product is compared on GPUs, without addends and factors")
    from torch._inductor import config as inductor  # takes a second

    key = a.shape, a.stride(), a.dtype, x.shape
    if key not in _tuned:
        inductor.compile_threads = 1  # its pool of processes takes seconds to start, and a gemv is one kernel
        _tuned.clear()
        _tuned[key] = compiled(_mv)
    return _tuned[key](a, x)


def _other_searches(op):
    for number in range(2, SEARCHES + 1):
        for name, call, writes_out in BASELINES[op]:
            if call.__name__.startswith("conv2d"):
                yield f"{name}, search {number}", searched_by(number, call), writes_out


CONVOLUTIONS = ("conv2d", "conv2d_input", "conv2d_weight")

# operation -> as in BASELINES
WAYS = BASELINES | {op: (*BASELINES[op], *_other_searches(op)) for op in CONVOLUTIONS}
WAYS["gemv"] += (("torch.compile", compiled_gemv, False),)
