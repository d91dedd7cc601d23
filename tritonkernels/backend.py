"""Which machine runs the Triton kernels: a GPU when torch sees one, else Triton's interpreter on CPU tensors.

Decided on first use, because it decides how `@triton.jit` decorates our kernels; importing the package touches neither.
TRITONKERNELS_BACKEND=gpu or =interpreter overrides. "gpu" without a GPU is good for compiling, not for launching.
"""

import functools
import logging
import os
import sys
import threading

import numpy
import torch

from .errors import BackendError
from .target import Target

log = logging.getLogger("tritonkernels")
log.addHandler(logging.StreamHandler())  # one line, on first use; silence it through logging as usual
log.propagate = False
log.setLevel(logging.INFO)

# Triton's interpreter patches triton.language while a kernel runs, so only one thread may be inside it.
INTERPRETER_LOCK = threading.RLock()
_CHOICE_LOCK = threading.Lock()


def name():
    """ "gpu" or "interpreter"; the first call prepares Triton for it, whichever thread makes it."""
    with _CHOICE_LOCK:
        return _choose()


@functools.cache
def _choose():
    wanted = os.environ.get("TRITONKERNELS_BACKEND", "").strip().lower()
    if wanted not in ("", "gpu", "interpreter"):
        raise BackendError(f"TRITONKERNELS_BACKEND is {wanted!r}; allowed: gpu, interpreter, or unset")
    chosen = wanted or ("gpu" if torch.cuda.is_available() else "interpreter")
    if chosen == "interpreter":
        _switch_triton_to_the_interpreter()
        why = "TRITONKERNELS_BACKEND asks for it" if wanted else "torch sees no GPU"
        log.info("tritonkernels: %s, so Triton kernels run in Triton's interpreter on CPU tensors (slow, for checking)", why)
    return chosen


def device_type():
    """The type of torch device that the backend serves."""
    return "cuda" if name() == "gpu" else "cpu"


def target(device):
    """The Target behind a tensor's device."""
    return Target.live(device) if name() == "gpu" else Target.named("interpreter")


def _switch_triton_to_the_interpreter():
    already_imported = "triton" in sys.modules
    os.environ["TRITON_INTERPRET"] = "1"
    import triton

    if _version(triton) < (3, 7) and _version(numpy) >= (2, 4):
        raise BackendError(
            f"the interpreter of Triton {triton.__version__} does not work with numpy {numpy.__version__}: "
            "pip install 'triton>=3.7' or 'numpy<2.4', or run on a GPU"
        )
    triton.knobs.runtime.interpret = True
    if already_imported:
        _interpret_standard_library()
    _patch_once_a_launch()


def _patch_once_a_launch():
    """In every call of a device function Triton's interpreter looks through all of triton.language for what it replaces,
    which takes longer than what most of them do. Once a launch is enough for those that see the same modules of it."""
    from triton.runtime import interpreter

    language = interpreter.tl
    patch, execute = interpreter._patch_lang, interpreter.GridExecutor.__call__
    patched = set()  # in the running launch

    def patch_once(function):
        visible = frozenset(m.__name__ for m in function.__globals__.values() if m is language or m is language.core)
        if visible not in patched:
            patched.add(visible)
            return patch(function)

    def execute_patched(self, *args, **kwargs):
        patched.clear()
        return execute(self, *args, **kwargs)

    interpreter._patch_lang, interpreter.GridExecutor.__call__ = patch_once, execute_patched


def _version(module):
    return tuple(int(part) for part in module.__version__.split(".")[:2])


def _interpret_standard_library():
    """Triton decorated tl.sum, tl.zeros, ... when it was imported: decorate them again, wherever they are referenced."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    again = {}
    for module in [m for key, m in sys.modules.items() if key.split(".")[:2] == ["triton", "language"]]:
        for attribute, value in list(vars(module).items()):
            if isinstance(value, JITFunction):
                function = again.setdefault(id(value), InterpretedFunction(value.fn))
                setattr(module, attribute, function)
