"""Builds CUDA kernels into Python functions: nvcc for the present GPU ("cuda"), g++ with simt/ for the CPU ("simt").

A build is a pure function of its name, which holds a hash of all that goes in: sources, flags, versions, architecture.
It happens in a directory of its own, in a child process that a timeout can kill, and is renamed into the cache when it
is whole; so neither a killed build nor another process can leave anything that a later one would trip over.
"""

import ctypes
import dataclasses
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path

from tritonkernels.errors import BuildError, ToolchainError

ROOT = Path(__file__).resolve().parent
BACKENDS = ("simt", "cuda")

_LINE_LIMIT = 40  # of the compiler's output, quoted in an error
_STALE_SECONDS = 86400
_CHILD = "import json, sys; from torch.utils.cpp_extension import load_inline; load_inline(**json.load(sys.stdin))"

_modules: dict = {}
_modules_lock = threading.Lock()


def load(header: str, expressions: Sequence[str], backend: str) -> dict[str, Callable]:
    """The kernels that `expressions` name, as functions (grid, block, shared_bytes, stream, *args); built if need be.

    `header` is relative to cuda_reference/, or absolute; an expression is C++ for a kernel: "gemm::tiled<128, 128, 8>".
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend: got {backend!r}; allowed: {', '.join(map(repr, BACKENDS))}.")
    key = (str(header), tuple(expressions), backend, _sanitizer())
    with _modules_lock:
        if key not in _modules:
            recipe = _recipe(*key[:3])
            _modules[key] = _import(recipe, _build(recipe))
        return {expression: getattr(_modules[key], expression) for expression in expressions}


def doctor() -> dict[str, str]:
    """What would be built, with what; for each backend "ready" or the error that `load` would raise. Never raises."""
    checks = {
        "c++ compiler": lambda: _compiler().version,
        "ninja": _ninja,
        "nvcc": lambda: _nvcc().version,
        "CUDA architecture": _gpu_architecture,
        "cache folder": lambda: str(_cache()),
        "simt": lambda: _ready("simt"),
        "cuda": lambda: _ready("cuda"),
    }
    answers = {}
    for name, check in checks.items():
        try:
            answers[name] = check()
        except Exception as error:  # whatever is wrong is the answer
            answers[name] = str(error)
    return answers


def _ready(backend):
    _flags(backend)
    _ninja()
    _cache()
    return "ready"


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """All that a build depends on."""

    name: str
    backend: str
    source: str
    flags: tuple


def _recipe(header, expressions, backend):
    path = (ROOT / header).resolve()
    if not path.is_file():
        raise BuildError(f"there is no kernel source {path}.")
    source = _source(path, expressions)
    import torch

    flags, tools = _flags(backend)
    files = _sources([path, ROOT / "common/binding.cuh"])
    if backend == "simt":
        files |= set((ROOT / "simt").glob("*.h"))
    digest = hashlib.sha256()
    for part in (source, *flags, *tools, torch.__version__, sys.version, sysconfig.get_config_var("EXT_SUFFIX")):
        digest.update(part.encode() + b"\0")
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    prefix = re.sub(r"\W+", "_", f"{backend}_{path.parent.name}_{path.stem}")
    return _Recipe(f"{prefix}_{digest.hexdigest()[:16]}", backend, source, tuple(flags))


def _source(path, expressions):
    header = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    lines = [
        '#include "common/binding.cuh"',
        f'#include "{header}"',
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {",
        *(f'    bind(module, "{expression}", {expression});' for expression in expressions),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _sources(paths):
    """The files, and all that they include by name in quotes."""
    found, todo = set(), list(paths)
    while todo:
        path = todo.pop().resolve()
        if path in found:
            continue
        found.add(path)
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE):
            todo += [candidate for candidate in (path.parent / name, ROOT / name) if candidate.is_file()][:1]
    return found


# --- toolchain ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Tool:
    path: str
    version: str
    macros: str = ""


def _flags(backend):
    """(compiler flags, versions of the tools that will be used)."""
    if backend == "simt":
        compiler = _compiler()
        # One translation unit's floats must not be assumed apart from its ints: kernels reinterpret, as nvcc allows.
        # _FORTIFY_SOURCE would take a switch of fibers for a corrupt longjmp.
        flags = [
            "-std=c++17",
            "-fno-strict-aliasing",
            "-fvisibility=hidden",
            "-U_FORTIFY_SOURCE",
            f"-I{ROOT}",
            f"-I{ROOT / 'simt'}",
        ]
        if _sanitizer():
            return [*flags, "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address"], [compiler.version]
        return [*flags, "-O3", "-march=native"], [compiler.version, compiler.macros]
    if _sanitizer():
        raise BuildError("TRITONKERNELS_SANITIZE applies to the simt backend only; use compute-sanitizer on a GPU.")
    arch = _gpu_architecture()
    return _cuda_flags(arch), [_nvcc(arch).version, _compiler().version]


def _cuda_flags(arch):
    # torch's defaults take the operators of half and bfloat16 away
    kept = [
        f"-U__CUDA_NO_{what}__" for what in ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS", "BFLOAT16_CONVERSIONS")
    ]
    return ["-std=c++17", "-O3", f"-gencode=arch=compute_{arch},code=sm_{arch}", *kept, f"-I{ROOT}"]


def _sanitizer():
    wanted = os.environ.get("TRITONKERNELS_SANITIZE", "")
    if wanted not in ("", "address"):
        raise BuildError(f"TRITONKERNELS_SANITIZE: got {wanted!r}; allowed: 'address', or unset.")
    return wanted


def sanitizer_preload() -> str:
    """LD_PRELOAD for a Python that loads sanitized modules: the runtime, and the C++ library, whose throw it wraps."""
    compiler = shlex.split(_compiler().path)
    return " ".join(_output([*compiler, f"-print-file-name={library}"]).strip() for library in ("libasan.so", "libstdc++.so"))


def _compiler():
    command = shlex.split(os.environ.get("CXX") or "g++")
    if shutil.which(command[0]) is None:
        raise ToolchainError(f"there is no C++ compiler {command[0]!r}: install g++ 9 or newer, or set CXX to one.")
    # What the compiler predefines says all: what it is, whether it knows C++17, and which CPU -march=native means.
    macros = _output([*command, "-std=c++17", "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    known = dict(re.findall(r"^#define (\w+) (.*)$", macros, re.MULTILINE))
    if int(known.get("__GNUC__", 0)) < 9 and "__clang__" not in known:
        raise ToolchainError(f"{command[0]} is g++ {known.get('__GNUC__', '?')}: install g++ 9 or newer, or set CXX to one.")
    return _Tool(shlex.join(command), _output([*command, "--version"]).splitlines()[0], macros)


def _ninja():
    path = shutil.which("ninja", path=_path())
    if path is None:
        raise ToolchainError("ninja, which torch builds extensions with, is missing: pip install ninja.")
    return f"{path} {_output([path, '--version']).strip()}"


def _cuda_home():
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if home:
            return Path(home)
    nvcc = shutil.which("nvcc")
    return Path(nvcc).resolve().parent.parent if nvcc else Path("/usr/local/cuda")


def _nvcc(arch=None):
    nvcc = _cuda_home() / "bin" / "nvcc"
    if not nvcc.is_file():
        raise ToolchainError(f"there is no {nvcc}: install the CUDA toolkit, or set CUDA_HOME to where it is.")
    version = _output([str(nvcc), "--version"]).strip().splitlines()[-1]
    if arch and f"compute_{arch.rstrip('a')}" not in _output([str(nvcc), "--list-gpu-arch"]).split():
        raise ToolchainError(f"{nvcc} ({version}) cannot compile for this GPU (sm_{arch}): install a CUDA toolkit that can.")
    return _Tool(str(nvcc), version)


def _gpu_architecture():
    import torch

    if torch.version.cuda is None:
        raise ToolchainError(
            f"torch {torch.__version__} is built without CUDA: install a CUDA build of torch, or use the simt backend."
        )
    if not torch.cuda.is_available():
        raise ToolchainError("torch finds no CUDA GPU: run on a machine with one, or use the simt backend.")
    major, minor = torch.cuda.get_device_capability()
    return f"{major}{minor}{'a' if major >= 9 else ''}"  # "a": with the instructions that only this architecture has


def _output(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=_clean_environment())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{shlex.join(command)} does not run: {error}. Repair or reinstall it.") from error
    if done.returncode != 0:
        raise ToolchainError(f"{shlex.join(command)} fails: {_tail(done.stderr)}\nRepair or reinstall it.")
    return done.stdout


def _path():
    return os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])


def _clean_environment():
    """For the tools: without the sanitizer's runtime, which would slow the compiler down and judge it."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | {
        "PATH": _path(),
        "LC_ALL": "C",
    }


# --- cache ----------------------------------------------------------------------------------------


def _cache():
    chosen = os.environ.get("TRITONKERNELS_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(chosen) if chosen else Path(base) / "tritonkernels"
    remedy = "Set TRITONKERNELS_CACHE to a folder of your own."
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise BuildError(f"the cache folder cannot be made: {error}. {remedy}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():  # modules found there are executed
        raise BuildError(f"the cache folder {folder} is a symbolic link or belongs to another user. {remedy}")
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise BuildError(f"the cache folder {folder} is writable for others. {remedy}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BuildError(f"the cache folder {folder} is not writable. {remedy}")
    return folder


def _digest(module):
    return hashlib.sha256(module.read_bytes()).hexdigest()


def _cached(module):
    try:
        return module.with_suffix(".sha256").read_text() == _digest(module)
    except OSError:
        return False


def _import(recipe, module):
    import torch  # noqa: F401  the module is linked against its libraries

    if _sanitizer() and not hasattr(ctypes.CDLL(None), "__asan_init"):  # loading would end the process
        raise BuildError(f"an address-sanitized module needs a Python started with LD_PRELOAD='{sanitizer_preload()}'.")
    spec = importlib.util.spec_from_file_location(recipe.name, module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@contextmanager
def _locked(path, deadline):
    """An exclusive lock between processes, which the kernel releases when its holder dies."""
    with open(path, "w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BuildError(
                        f"another process has been building {path.stem} for too long; see TRITONKERNELS_BUILD_TIMEOUT."
                    ) from None
                time.sleep(0.05)
        yield


# --- build ----------------------------------------------------------------------------------------


def _build(recipe):
    """The path of the module, built unless the cache has it whole."""
    cache = _cache()
    module = cache / recipe.name / f"{recipe.name}.so"
    if _cached(module):
        return module
    _ninja()
    timeout = _timeout()
    with _locked(cache / f"{recipe.name}.lock", time.monotonic() + timeout):
        if _cached(module):  # by who held the lock before
            return module
        _remove_stale(cache)
        private = Path(tempfile.mkdtemp(prefix=".building-", dir=cache))
        try:
            _compile(recipe, private, timeout)
            built = private / module.name
            built.with_suffix(".sha256").write_text(_digest(built))
            for leftover in private.glob("*.o"):
                leftover.unlink()
            shutil.rmtree(module.parent, ignore_errors=True)  # a damaged one
            private.rename(module.parent)
        except OSError as error:
            raise BuildError(
                f"{recipe.name} cannot be stored in {cache}: {error}. Free space there or set TRITONKERNELS_CACHE."
            ) from error
        finally:
            shutil.rmtree(private, ignore_errors=True)
    return module


def _timeout():
    value = os.environ.get("TRITONKERNELS_BUILD_TIMEOUT", "600")
    try:
        return float(value)
    except ValueError:
        raise BuildError(f"TRITONKERNELS_BUILD_TIMEOUT: got {value!r}; allowed: a number of seconds.") from None


def _remove_stale(cache):
    for folder in cache.glob(".building-*"):
        if time.time() - folder.lstat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _compile(recipe, folder, timeout):
    job = {"name": recipe.name, "build_directory": str(folder), "no_implicit_headers": True, "verbose": True}
    environment = _clean_environment() | {"CXX": _compiler().path}
    if recipe.backend == "simt":
        link = ["-fsanitize=address"] if _sanitizer() else []
        job |= {"cpp_sources": recipe.source, "extra_cflags": recipe.flags, "extra_ldflags": link}
        if _sanitizer():  # load_inline ends with an import
            environment |= {"LD_PRELOAD": sanitizer_preload(), "ASAN_OPTIONS": "detect_leaks=0"}
    else:
        environment["CUDA_HOME"] = str(_cuda_home())
        job |= {
            "cpp_sources": "// all is in the CUDA source",
            "cuda_sources": recipe.source,
            "extra_cuda_cflags": recipe.flags,
        }

    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        text=True,
        start_new_session=True,  # so that ninja and the compilers die with it
    )
    try:
        output, _ = child.communicate(json.dumps(job), timeout)
    except subprocess.TimeoutExpired:
        raise BuildError(f"building {recipe.name} took more than {timeout:g} s: raise TRITONKERNELS_BUILD_TIMEOUT.") from None
    finally:
        if child.poll() is None:  # timed out or interrupted
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    if child.returncode != 0:
        compiler_says = output.partition("\nninja: build stopped")[0]  # what follows is torch's traceback
        raise BuildError(f"building {recipe.name} failed:\n{_tail(compiler_says)}")


def _tail(text):
    return "\n".join(text.strip().splitlines()[-_LINE_LIMIT:])
