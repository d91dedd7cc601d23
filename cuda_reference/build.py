"""Builds CUDA kernels into Python functions: nvcc for the present GPU ("cuda"), g++ with simt/ for the CPU ("simt").

"trace" is simt with a recorder of memory accesses, for trace.py.

A build's name contains a hash of all its inputs (recipes.py). Its commands, with the tools of toolchain.py, run in a child
process that a timeout can kill (child.py), and what they build is kept in cache.py's folder.
"""

import contextlib
import ctypes
import importlib.machinery
import importlib.util
import os
import shlex
import sysconfig
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tritonkernels import cache
from tritonkernels.backend import log
from tritonkernels.errors import BuildError

from . import child, recipes, toolchain
from .child import stop
from .toolchain import ROOT, sanitizer_preload

__all__ = ["BACKENDS", "ROOT", "build_part", "doctor", "is_built", "load", "load_part", "sanitizer_preload", "seconds", "stop"]

BACKENDS = ("simt", "cuda", "trace")
_RECORDER = ("trace_begin", "trace_end", "trace_shared", "__file__")  # functions of a traced module besides its kernels

TYPICAL, LONGEST = 4, 8  # seconds of nvcc for one kernel of a first call, alone on a core: the median, and the most of 27
_kernels: dict = {}
_parts: dict = {}  # what every module is built with: an open descriptor, and the state in which it was verified
_locks: dict = {}  # one per module, so that a build delays only those who need it
os.register_at_fork(after_in_child=_locks.clear)  # their holders do not exist there


def load(header: str, expressions: Sequence[str], backend: str) -> Mapping[str, Callable]:
    """The kernels of `expressions`, as functions (grid, block, shared_bytes, stream, *args); built on first use.

    `header` is relative to cuda_reference/, or absolute; an expression is C++ for a kernel: "gemm::tiled<128, 128, 8>".
    Environment variables (CXX, TRITONKERNELS_*) are read on the first call; later calls are one lookup.
    """
    key = (header, tuple(expressions), backend)
    kernels = _kernels.get(key)
    return _load(key) if kernels is None else kernels


def load_part(header: str, part: Sequence[str], whole: Sequence[str], backend: str) -> Mapping[str, Callable]:
    """The kernels of `part`, and maybe more of `whole`: its module if that is built, else one of `part` only.

    For a call, which waits for the compiler and says so. To build most of `whole`, `load` it: one module takes less than many.
    """
    keys = _keys(header, part, whole, backend)
    for key in keys:
        if key in _kernels:
            return _kernels[key]
    notice = f"cuda_reference: building {part[0]} for this GPU, once; this usually takes {TYPICAL} to {LONGEST} s"
    return _load(next(filter(_is_cached, keys), keys[0]), notice)


def build_part(header: str, part: Sequence[str], whole: Sequence[str], backend: str) -> None:
    """Build what load_part would, and load nothing."""
    keys = _keys(header, part, whole, backend)
    if not any(map(_is_cached, keys)):
        os.close(_build(recipes.module(*keys[0])))


def is_built(header: str, expressions: Sequence[str], backend: str) -> bool:
    """Whether `load` would find the module in the cache."""
    return _is_cached((header, tuple(expressions), backend))


def seconds(header: str, part: Sequence[str], whole: Sequence[str], backend: str) -> float:
    """How long build_part is expected to take: 0 if that is built, else as long as the last such build."""
    keys = _keys(header, part, whole, backend)
    return 0.0 if any(map(_is_cached, keys)) else _noted(recipes.module(*keys[0]).note)


def _keys(header, part, whole, backend):
    return [(header, tuple(expressions), backend) for expressions in (part, whole)]


def doctor() -> dict[str, str]:
    """The tools, and for each backend "ready" or the error that `load` would raise. Never raises."""
    checks = {
        "c++ compiler": lambda: toolchain.compiler().version,
        "nvcc": lambda: toolchain.nvcc().version,
        "CUDA architecture": toolchain.gpu_architecture,
        "cache folder": lambda: str(cache.folder()),
        "simt": lambda: _ready("simt"),
        "cuda": lambda: _ready("cuda"),
    }
    answers = {}
    for name, check in checks.items():
        try:
            answers[name] = check()
        except Exception as error:  # any error is the answer
            answers[name] = str(error)
    return answers


def _ready(backend):
    toolchain.flags(backend)
    cache.folder()
    return "ready"


def _load(key, notice=None):
    """The kernels of the module, which is built if need be; then the log gets the notice."""
    header, expressions, backend = key
    if backend not in BACKENDS:
        raise ValueError(f"backend: got {backend!r}; allowed: {', '.join(map(repr, BACKENDS))}.")
    with _locks.setdefault(key, threading.Lock()):
        if key not in _kernels:
            recipe = recipes.module(header, expressions, backend)
            module = _import(recipe.name, _build(recipe, notice))
            names = (*expressions, *_RECORDER) if backend == "trace" else expressions
            _kernels[key] = MappingProxyType({name: getattr(module, name) for name in names})
        return _kernels[key]


def _is_cached(key):
    recipe = recipes.module(*key)
    built = cache.find(recipe.name, recipe.suffix)
    if built is not None:
        os.close(built)
    return built is not None


def _build(recipe, notice=None):
    """An open descriptor of the build, from the cache or made now."""
    cache.folder()  # raises if the folder cannot be used
    built = cache.find(recipe.name, recipe.suffix)
    if built is not None:
        return built
    timeout = _timeout()
    with cache.locked(recipe.name, timeout):
        built = cache.find(recipe.name, recipe.suffix)  # built by the previous holder of the lock
        if built is None:
            if notice:
                log.warning(notice)
            with _timed(recipe.note):
                cache.store(recipe.name, lambda folder: _compile(recipe, folder, timeout), recipe.suffix)
            built = cache.find(recipe.name, recipe.suffix)
    if built is None:
        raise BuildError(f"{recipe.name} was built and has disappeared: another program changes {cache.folder()}.")
    return built


@contextlib.contextmanager
def _timed(note):
    """Keep how long a build takes. One that the caller's time was too short for (SystemExit) may take twice as long."""
    began = time.monotonic()
    try:
        yield
    except SystemExit:
        _keep(note, max(_noted(note), 2 * (time.monotonic() - began)))
        raise
    _keep(note, time.monotonic() - began)


def _keep(note, seconds):
    if note:
        with contextlib.suppress(OSError):  # for instance no space: the build itself may be right
            (cache.folder() / note).write_text(f"{seconds:.1f}\n")


def _noted(note):
    try:
        return float((cache.folder() / note).read_text())
    except (OSError, ValueError):
        return float(TYPICAL)


def _import(name, descriptor):
    """The module behind the descriptor, which stays open: the dynamic linker identifies files by their number."""
    import torch  # noqa: F401  which loads the CUDA runtime that the module is linked with

    if toolchain.sanitizer() and not hasattr(ctypes.CDLL(None), "__asan_init"):  # else loading would end the process
        raise BuildError(f"an address-sanitized module needs a Python started with LD_PRELOAD='{sanitizer_preload()}'.")
    loader = importlib.machinery.ExtensionFileLoader(name, f"/proc/self/fd/{descriptor}")
    spec = importlib.util.spec_from_loader(name, loader)
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise BuildError(f"{name} cannot be loaded: {error}. Remove it from {cache.folder()}.") from error
    return module


def _timeout():
    value = os.environ.get("TRITONKERNELS_BUILD_TIMEOUT", "600")
    try:
        return float(value)
    except ValueError:
        raise BuildError(f"TRITONKERNELS_BUILD_TIMEOUT: got {value!r}; allowed: a number of seconds.") from None


def _compile(recipe, folder, timeout):
    child.run(recipe, _commands(recipe, folder), folder, timeout)


def _commands(recipe, folder):
    """The compiler's commands. Linking is separate: there, the flag for a traced kernel's callbacks would want its library."""
    result, main, runtime = folder / f"{recipe.name}{recipe.suffix}", folder / "main.o", folder / "runtime.o"
    cuda = recipe.backend == "cuda"
    source = folder / f"main.{'cu' if cuda else 'cpp'}"
    named = f"#define MODULE_NAME {recipe.name}\n"  # -D would void what is precompiled
    source.write_text(named * (recipe.suffix == ".so") + recipe.source)
    compiler = [toolchain.nvcc().path] if cuda else shlex.split(toolchain.compiler().path)
    compile = [*compiler, *recipe.flags, "-isystem", sysconfig.get_paths()["include"], "-o"]
    if recipe.suffix == ".o":
        return [[*compile, str(result), "-c", str(source)]]
    if recipe.suffix == ".gch":
        return [[*compile, str(result), "-x", "c++-header", str(source)]]
    _link_to(runtime, recipes.runtime(recipe.backend))
    first = [] if cuda else ["-include", str(_included_first(recipe.backend, folder))]
    link = [*compiler, *(recipe.flags if cuda else ()), *toolchain.link_flags(recipe.backend), "-shared", "-o"]
    return [
        [*compile, str(main), *first, "-c", str(source)],
        [*link, str(result), str(main), str(runtime)],
    ]


def _included_first(backend, folder):
    """The file that a module includes first, precompiled if the compiler takes that: clang refuses it once a file was written
    again. It is empty, and the module includes all itself."""
    headers = folder / "headers.h"
    headers.write_text("")
    if "__clang__" not in toolchain.compiler().macros:
        _link_to(folder / "headers.h.gch", recipes.headers(backend))
    return headers


def _link_to(path, part):
    """Put a built part there, as a link: to copy 40 MB takes as long as to compile a small kernel."""
    path.symlink_to(f"/proc/{os.getpid()}/fd/{_opened(part)}")


def _opened(part):
    """A descriptor of the part, which stays open: verified again only if the file has changed since."""
    known = _parts.get(part.name)
    if known is None or known[1] != _state(known[0]):
        built = _build(part)
        known = _parts[part.name] = built, _state(built)
    return known[0]


def _state(descriptor):
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns
