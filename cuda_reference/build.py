"""Builds CUDA kernels into Python functions: nvcc for the present GPU ("cuda"), g++ with simt/ for the CPU ("simt").

"trace" is simt with a recorder of memory accesses, for trace.py.

The name of a build contains a hash of all its inputs: sources, flags, versions, architecture. It runs in a child process that a
timeout can kill, with the tools of toolchain.py, and is kept in cache.py's folder.
"""

import contextlib
import ctypes
import dataclasses
import functools
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tritonkernels import cache
from tritonkernels.backend import log
from tritonkernels.errors import BuildError

from . import launch_bounds, toolchain
from .toolchain import ROOT, sanitizer_preload

__all__ = ["BACKENDS", "ROOT", "build_part", "doctor", "is_built", "load", "load_part", "sanitizer_preload", "seconds", "stop"]

BACKENDS = ("simt", "cuda", "trace")
OVERLAP = "common/overlap.cuh"
_RECORDER = ("trace_begin", "trace_end", "trace_shared", "__file__")  # functions of a traced module besides its kernels

# SIGTERM, also sent when the parent process dies, goes to all of the child's process group: to g++ and its compiler, and to
# ninja, which alone can end its compilers. Then nothing is left to do: to leave torch as usual would take a second.
_CHILD = """
import contextlib, ctypes, json, os, signal, subprocess, sys
def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(1)
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
job = json.load(sys.stdin)
"""
# Builds for the CPU do not import torch, which would take as long as the compiler.
_RUN = "signal.signal(signal.SIGTERM, end); sys.exit(any(subprocess.call(command) for command in job))"
_LOAD_INLINE = "from torch.utils.cpp_extension import load_inline; signal.signal(signal.SIGTERM, end); load_inline(**job)"
TYPICAL, LONGEST = 14, 32  # seconds of nvcc for one kernel, on the host of an H200: the median, and the most that was measured
_GRACE = 10  # seconds to end after SIGTERM
_REMEDY = (
    "cuda_reference.doctor() says which tools were used. The environment variable CXX names another C++ compiler, CUDA_HOME "
    "the folder of another CUDA toolkit. If other tools fail, too, report this with what doctor() says."
)

_children: set = set()  # of the builds under way
_stopped = 0.0  # when stop() was called last
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
        os.close(_build(_recipe(*keys[0])))


def is_built(header: str, expressions: Sequence[str], backend: str) -> bool:
    """Whether `load` would find the module in the cache."""
    return _is_cached((header, tuple(expressions), backend))


def seconds(header: str, part: Sequence[str], whole: Sequence[str], backend: str) -> float:
    """How long build_part is expected to take: 0 if that is built, else as long as the last such build."""
    keys = _keys(header, part, whole, backend)
    return 0.0 if any(map(_is_cached, keys)) else _noted(_recipe(*keys[0]).note)


def _keys(header, part, whole, backend):
    return [(header, tuple(expressions), backend) for expressions in (part, whole)]


def stop() -> None:
    """End the builds asked for until now by all threads of this process, which get BuildError: for a user who interrupts it."""
    global _stopped
    _stopped = time.monotonic()
    for child in tuple(_children):
        child.terminate()


def doctor() -> dict[str, str]:
    """The tools, and for each backend "ready" or the error that `load` would raise. Never raises."""
    checks = {
        "c++ compiler": lambda: toolchain.compiler().version,
        "ninja": toolchain.ninja,
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
    _check_tools(backend)
    toolchain.flags(backend)
    cache.folder()
    return "ready"


def _check_tools(backend):
    if backend == "cuda":
        toolchain.ninja()


def _load(key, notice=None):
    """The kernels of the module, which is built if need be; then the log gets the notice."""
    header, expressions, backend = key
    if backend not in BACKENDS:
        raise ValueError(f"backend: got {backend!r}; allowed: {', '.join(map(repr, BACKENDS))}.")
    with _locks.setdefault(key, threading.Lock()):
        if key not in _kernels:
            recipe = _recipe(header, expressions, backend)
            module = _import(recipe.name, _build(recipe, notice))
            names = (*expressions, *_RECORDER) if backend == "trace" else expressions
            _kernels[key] = MappingProxyType({name: getattr(module, name) for name in names})
        return _kernels[key]


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """The inputs of a build."""

    name: str
    backend: str
    source: str
    flags: tuple
    suffix: str = ".so"  # of what is built
    asked: float = dataclasses.field(default_factory=time.monotonic, compare=False)  # when
    note: str = ""  # the file in the cache folder that keeps how long such a build takes; none if that is a second


def _recipe(header, expressions, backend):
    path = (ROOT / header).resolve()
    if not path.is_file():
        raise BuildError(f"there is no kernel source {path}.")
    files = _sources([path, ROOT / "common/binding.cuh"])
    source = _source(path, expressions, backend, files)
    if backend != "cuda":
        files |= _emulation()
    prefix = f"{backend}_{path.parent.name}_{path.stem}"
    note = f"{prefix}_{len(expressions)}.seconds" if backend == "cuda" else ""
    outside = None if backend == "cuda" or path.is_relative_to(ROOT) else path.parent
    return dataclasses.replace(_named(prefix, backend, source, files, outside=outside), note=note)


def _runtime(backend):
    """The recipe of the emulation's own code, which every module is linked with: it takes g++ longer than most kernels."""
    files = _sources(_emulation())
    source = "".join(f'#include "{file.relative_to(ROOT)}"\n' for file in sorted(files) if file.suffix == ".cpp")
    return _named(f"{backend}_runtime", backend, source, files, ".o")


def _headers(backend):
    """The recipe of what every module includes, precompiled: g++ reads it half a second faster."""
    files = _sources([ROOT / "common/binding.cuh"]) | _emulation()
    return _named(f"{backend}_headers", backend, '#include "common/binding.cuh"\n', files, ".gch")


def _emulation():
    return {file for pattern in ("*.h", "*.cpp") for file in (ROOT / "simt").glob(pattern)}


def _named(prefix, backend, source, files, suffix=".so", outside=None):
    """The recipe, whose name holds a digest of all that goes in but the places of this package and of a kernel's folder that is
    `outside` of it: checkouts share their builds.

    Precompiled headers they do not share: the lines in them are where they were precompiled, whatever -ffile-prefix-map says.
    """
    import torch

    flags, tools = toolchain.flags(backend)
    if outside is not None:
        flags = [*flags, f"-ffile-prefix-map={outside}={toolchain.OUTSIDE}"]
    places = [str(place) for place in (ROOT, outside) if place is not None and suffix != ".gch"]
    digest = hashlib.sha256()
    for part in (source, *flags, *tools, torch.__version__, sys.version, importlib.machinery.EXTENSION_SUFFIXES[0]):
        digest.update(functools.reduce(lambda text, place: text.replace(place, ""), places, part).encode() + b"\0")
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    prefix = re.sub(r"\W+", "_", prefix)
    return _Recipe(f"{prefix}_{digest.hexdigest()[:16]}", backend, source, tuple(flags), suffix)


@functools.cache
def overlaps(header: str) -> bool:
    """Whether the header's kernels may begin on this GPU while those before them run: it includes overlap.cuh, so they wait."""
    architecture = re.search(r"sm_(\d+)", " ".join(toolchain.flags("cuda")[0]))[1]
    return int(architecture) >= 90 and ROOT / OVERLAP in _sources([ROOT / header])


def _source(path, expressions, backend, files):
    header = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    constants, bounds = ([], []) if backend == "cuda" else launch_bounds.lines(expressions, sorted(files))
    traced, early = backend == "trace", str(backend == "cuda" and overlaps(str(header))).lower()
    lines = [
        '#include "common/binding.cuh"',
        f'#include "{header}"',
        *(['#include "simt/trace_recorder.h"'] if traced else []),
        *constants,
        "KERNEL_MODULE(TORCH_EXTENSION_NAME, module) {",
        *(f'    bind(module, "{expression}", {expression}, {early});' for expression in expressions),
        *bounds,
        *(["    bind_trace(module);"] if traced else []),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _sources(paths):
    """The files, and all files that they include in quotes."""
    sources, todo = set(), list(paths)
    while todo:
        path = todo.pop().resolve()
        if path in sources:
            continue
        sources.add(path)
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE):
            todo += [candidate for candidate in (path.parent / name, ROOT / name) if candidate.is_file()][:1]
    return sources


def _is_cached(key):
    recipe = _recipe(*key)
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
    _check_tools(recipe.backend)
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
    import torch  # noqa: F401  the module is linked against its libraries

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
    environment = toolchain.clean_environment()
    if recipe.backend != "cuda":
        program = _RUN
        job = _commands(recipe, folder)
    else:
        environment |= {"CXX": toolchain.compiler().path, "CUDA_HOME": str(toolchain.cuda_home())}
        program = _LOAD_INLINE
        job = {
            "name": recipe.name,
            "build_directory": str(folder),
            "no_implicit_headers": True,
            "verbose": True,
            "cpp_sources": "// everything is in the CUDA source",
            "cuda_sources": recipe.source,
            "extra_cuda_cflags": recipe.flags,
        }

    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD + program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        text=True,
        start_new_session=True,  # and a process group, for `end`
    )
    _children.add(child)
    try:
        if recipe.asked < _stopped:  # it has waited for another's build, which was ended
            raise BuildError(f"building {recipe.name} was interrupted.")
        output, _ = child.communicate(json.dumps(job), timeout)
    except subprocess.TimeoutExpired:
        raise BuildError(f"building {recipe.name} took more than {timeout:g} s: raise TRITONKERNELS_BUILD_TIMEOUT.") from None
    finally:
        _children.discard(child)
        if child.poll() is None:  # timed out or interrupted
            _end(child)
    if child.returncode != 0:
        compiler_says = output.partition("\nninja: build stopped")[0]  # torch's traceback follows
        raise BuildError(f"building {recipe.name} failed:\n{toolchain.tail(compiler_says)}\n{_REMEDY}")


def _commands(recipe, folder):
    """g++'s commands. Linking is separate: there, the flag for a traced kernel's callbacks would require their library."""
    source, result = folder / "main.cpp", folder / f"{recipe.name}{recipe.suffix}"
    named = f"#define TORCH_EXTENSION_NAME {recipe.name}\n"  # -D would void what is precompiled
    source.write_text(named * (recipe.suffix == ".so") + recipe.source)
    compiler = shlex.split(toolchain.compiler().path)
    compile = [*compiler, "-isystem", sysconfig.get_paths()["include"], *recipe.flags, "-fPIC", "-o"]
    if recipe.suffix == ".o":
        return [[*compile, str(result), "-O2", "-c", str(source)]]  # built once, and every launch runs it
    if recipe.suffix == ".gch":
        return [[*compile, str(result), "-x", "c++-header", str(source)]]
    headers, main, runtime = (folder / name for name in ("headers.h", "main.o", "runtime.o"))
    headers.write_text("")  # main.cpp includes all itself where the compiler finds or takes no headers.h.gch
    parts = {runtime: _runtime(recipe.backend)}
    if "__clang__" not in toolchain.compiler().macros:  # clang refuses them once a file was written again
        parts[folder / "headers.h.gch"] = _headers(recipe.backend)
    for path, part in parts.items():
        path.symlink_to(f"/proc/{os.getpid()}/fd/{_opened(part)}")  # to copy 40 MB takes as long as to compile a small kernel
    link = ["-fsanitize=address"] if toolchain.sanitizer() else []
    return [
        [*compile, str(main), "-include", str(headers), "-c", str(source)],
        [*compiler, "-shared", *link, str(main), str(runtime), "-o", str(result)],
    ]


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


def _end(child):
    child.terminate()
    try:
        child.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
