"""Repeated calls without Python: repeat.cpp, which is compiled in the background, once for this Python, torch and compiler.

For calls on a GPU: the interpreter and the emulation take so long that it would not matter. Until it is there, and where it
cannot be built, calls are repeated by plans.py, with the same results. TRITONKERNELS_NATIVE=0 turns it off, and 1 on for CPUs.
"""

import contextlib
import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import torch

from .. import cache
from ..backend import log
from ..errors import BuildError, TritonKernelsError
from ..plans import with_address

SOURCE = Path(__file__).with_name("repeat.cpp")
TIMEOUT = 600  # seconds
FLAGS = ("-O2", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden")

_lock = threading.Lock()
_waiting = []  # libraries, for the module; for good, if it cannot be built


def is_for(device):
    setting = os.environ.get("TRITONKERNELS_NATIVE", "")
    return setting == "1" or (setting != "0" and device.type == "cuda")


def serve(library):
    """Give the library a Repeats, as `native`, as soon as there is the module. Asked again, it does nothing."""
    with _lock:
        if library.native or library in _waiting:
            return
        _waiting.append(library)
        if len(_waiting) == 1:
            threading.Thread(target=_serve_all, name="tritonkernels native", daemon=True).start()


def _serve_all():
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)  # of this thread and its compiler: calls go first
    try:
        module = load()
    except TritonKernelsError as error:
        log.warning("tritonkernels: repeated calls stay in Python: %s", error)
        return
    with _lock:
        for library in _waiting:
            library.native = module.Repeats()
            for operator in library.operators.values():
                operator.shorten()
        _waiting.clear()


@functools.cache
def load():
    """The module, built if need be; BuildError."""
    command = _command()
    digest = hashlib.sha256()
    for part in (*_compiler(), *FLAGS, torch.__version__, sys.version):  # not where they lie: environments share the module
        digest.update(part.encode() + b"\0")
    for file in (SOURCE, *sorted(SOURCE.parent.glob("*.h"))):
        digest.update(file.read_bytes() + b"\0")
    name = f"native_repeat_{digest.hexdigest()[:16]}"
    built = cache.find(name, ".so")
    if built is None:
        built = _built(name, command)
    loader = importlib.machinery.ExtensionFileLoader("repeat", f"/proc/self/fd/{built}")  # what was verified, and stays open
    try:
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("repeat", loader))
        loader.exec_module(module)
    except ImportError as error:
        raise BuildError(f"what {shlex.join(command)} built does not load: {error}") from error
    return module


def _built(name, command):
    """The module as cache.find gives it. One of the processes that want it, such as the ranks of a node, builds it."""
    with cache.locked(name, TIMEOUT):
        if (built := cache.find(name, ".so")) is not None:
            return built
        log.info("tritonkernels: compiling the repetition of calls, once; this takes 10 to 60 s, in the background")
        cache.store(name, lambda folder: _compile([*command, "-o", str(folder / f"{name}.so")]), ".so")
    built = cache.find(name, ".so")
    if built is None:
        raise BuildError(f"{name} was built and has disappeared: another program changes {cache.folder()}.")
    return built


def _compiler():
    return shlex.split(os.environ.get("CXX") or "g++")


def _command():
    """The compiler's command line, without the result's path."""
    of_torch = Path(torch.__file__).parent
    include = [of_torch / "include", of_torch / "include/torch/csrc/api/include", sysconfig.get_paths()["include"]]
    triton = importlib.util.find_spec("triton").origin
    include.append(Path(triton).parent / "backends/nvidia/include")  # cuda.h, where there is no CUDA toolkit
    libraries = ["-ltorch_python", "-ltorch_cpu", "-lc10", "-ldl"]
    return [
        *_compiler(),
        *FLAGS,
        *(f"-I{path}" for path in include),
        str(SOURCE),
        f"-L{of_torch / 'lib'}",
        *libraries,
    ]


def _compile(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"the compiler does not run: {error}") from error
    if done.returncode:
        raise BuildError(f"{shlex.join(command)} fails: {done.stderr[-2000:]}")


def teach(repeats, values, plan, backward=None, saves=None, switches=None):
    """Have such calls repeated by `repeats`; `values` are what the plan's key is made of.

    backward  (grad, tensors, wanted) -> gradients, of the tensors among the values, in their order, before they are summed to
              the tensors' shapes; tensors that were not kept and gradients that are not wanted are None. Without it calls with
              gradients are left to Python
    saves     which tensors need gradients -> which of them to keep for backward
    switches  () -> what the plans of backward's calls depend on, besides their arguments
    """
    makes = tuple(_like(make) if getattr(make, "func", None) is torch.empty_strided else make for make in plan.makes)
    launches = tuple(_launch(launched, places) for launched, places in plan.launches)
    return repeats.learn(tuple(values), makes, launches, plan.result, backward, saves, switches)


def _like(make):
    """What torch.empty_strided makes, without its memory."""
    return make.func(*make.args, **make.keywords | {"device": "meta"})


def _launch(launched, places):
    """A launch as Repeats.learn takes it; each place is (index, slot, offset, the rest of a struct or None, build or None)."""
    before = len(launched.before)
    first = before + 1 + len(launched.after)
    found = []
    for index, slot, offset, build in places:
        rest = build.args[0] if getattr(build, "func", None) is with_address else None
        found.append((first + index, slot, offset, rest, None if rest is not None else build))
    arguments = (*launched.before, 0, *launched.after, *launched.values)
    return launched.function, arguments, before, launched.keeps, launched.is_pure, launched.overlaps, tuple(found)
