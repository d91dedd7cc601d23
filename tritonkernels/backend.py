"""The backend of the Triton kernels: a GPU if torch sees one, else Triton's interpreter on CPU tensors.

Chosen on first use, because `@triton.jit` decorates the kernels for one of them (language/triton.py); importing the package
touches neither. The user's own kernels are not concerned.
TRITONKERNELS_BACKEND=gpu or =interpreter overrides. "gpu" without a GPU can compile, but not launch.
"""

import functools
import logging
import os
import threading

import numpy
import torch

from .errors import BackendError
from .target import Target

log = logging.getLogger("tritonkernels")

# Triton's interpreter keeps the running program's place in the grid in one object, so only one thread may be inside it.
INTERPRETER_LOCK = threading.RLock()
_CHOICE_LOCK = threading.Lock()


@functools.cache
def name():
    """ "gpu" or "interpreter"; chosen by the first call, in any thread."""
    with _CHOICE_LOCK:
        return _choose()


@functools.cache
def _choose():
    setting = os.environ.get("TRITONKERNELS_BACKEND", "").strip().lower()
    if setting not in ("", "gpu", "interpreter"):
        raise BackendError(f"TRITONKERNELS_BACKEND is {setting!r}; allowed: gpu, interpreter, or unset")
    chosen = setting or ("gpu" if torch.cuda.is_available() else "interpreter")
    if chosen == "interpreter":
        _check_the_interpreter()
        why = "TRITONKERNELS_BACKEND selects it" if setting else "torch sees no GPU"
        log.warning("tritonkernels: %s, so Triton kernels run in Triton's interpreter on CPU tensors (slow, for checking)", why)
    return chosen


def device_type():
    """The torch device type of the backend."""
    return "cuda" if name() == "gpu" else "cpu"


def target(device):
    """The Target behind a tensor's device."""
    return Target.live(device) if name() == "gpu" else Target.named("interpreter")


def _check_the_interpreter():
    import triton

    if version(triton) < (3, 7) and version(numpy) >= (2, 4):
        raise BackendError(
            f"the interpreter of Triton {triton.__version__} does not work with numpy {numpy.__version__}: "
            "pip install 'triton>=3.7' or 'numpy<2.4', or run on a GPU"
        )


def version(module):
    """(major, minor) of a module."""
    return tuple(int(part) for part in module.__version__.split(".")[:2])
