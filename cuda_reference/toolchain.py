"""The tools that build kernels: the installed compilers, their abilities, and the flags of each backend."""

import dataclasses
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tritonkernels.errors import BuildError, ToolchainError

ROOT = Path(__file__).resolve().parent
BUILT_IN = "/cuda_reference"  # what modules for the CPU call ROOT, so that another checkout can use them
OUTSIDE = "/outside"  # and the folder of a kernel that is elsewhere

_given = None  # the architecture to build for; None is that of the present GPU
_LINE_LIMIT = 40  # lines of a tool's output quoted in an error

# Every access calls a recorder (simt/trace_recorder.cpp). An access in the source must stay one instruction, on its own line
# and as wide as written: passes that merge, move or split accesses are off; inlining and forwarding of values are on.
_TRACE_PASSES_OFF = (
    *("tree-vectorize", "tree-slp-vectorize", "store-merging", "tree-loop-distribute-patterns", "tree-pre", "code-hoisting"),
    *("tree-tail-merge", "crossjumping", "ipa-icf", "partial-inlining"),
    "optimize-sibling-calls",  # a callback in a tail call would return to another function's line
)
_TRACE_FLAGS = ["-DSIMT_TRACE", "-fsanitize=thread", "-g1", "-O2", *(f"-fno-{name}" for name in _TRACE_PASSES_OFF)]


@dataclasses.dataclass(frozen=True)
class Tool:
    path: str
    version: str
    macros: str = ""


def flags(backend):
    """(compiler flags, versions of the tools that will be used)."""
    if backend == "simt" or (backend == "trace" and not sanitizer()):
        tool = compiler()
        # No strict aliasing: kernels reinterpret floats as ints, as nvcc allows.
        # No _FORTIFY_SOURCE: it would take a switch of fibers for a corrupt longjmp.
        # No automatic fused multiply-adds: they would round differently on machines that have them.
        common = ["-std=c++17", "-ffp-contract=off", "-fno-strict-aliasing", "-fvisibility=hidden", "-U_FORTIFY_SOURCE"]
        common += ["-fPIC", f"-I{ROOT}", f"-I{ROOT / 'simt'}", f"-ffile-prefix-map={ROOT}={BUILT_IN}"]
        if backend == "trace":
            return [*common, *_TRACE_FLAGS], [tool.version]
        if sanitizer():
            return [*common, "-O0", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address"], [tool.version]
        aligned = ["-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"]  # a vector at an odd address faults on a GPU
        return [*common, *aligned, "-O1", "-march=native"], [tool.version, tool.macros]  # -O3 is no faster, builds longer
    if sanitizer():
        raise BuildError("TRITONKERNELS_SANITIZE applies to the simt backend only; use compute-sanitizer on a GPU.")
    arch = gpu_architecture()
    return cuda_flags(arch), [nvcc(arch).version, compiler().version]


def cuda_flags(arch):
    words = shlex.split(compiler().path)
    *_, host = (word for word in words if not word.startswith("-"))  # behind a launcher such as ccache
    options = [f"-Xcompiler={word}" for word in ("-fPIC", *words) if word.startswith("-")]
    architecture = f"-gencode=arch=compute_{arch},code=sm_{arch}"
    return ["-std=c++17", "-O3", architecture, "--expt-relaxed-constexpr", "-ccbin", host, *options, f"-I{ROOT}"]


def link_flags(backend):
    """What a module is linked with: the sanitizer, or CUDA's runtime, which torch has loaded."""
    if backend == "cuda":
        no_device_code = ["-nodlink", "-cudadevrt=none"]
        return [*no_device_code, "-cudart=shared", f"-L{cuda_home() / 'lib'}"]  # where pip has it; nvcc knows other places
    return ["-fsanitize=address"] if sanitizer() else []


def sanitizer():
    setting = os.environ.get("TRITONKERNELS_SANITIZE", "")
    if setting not in ("", "address"):
        raise BuildError(f"TRITONKERNELS_SANITIZE: got {setting!r}; allowed: 'address', or unset.")
    return setting


def sanitizer_preload() -> str:
    """LD_PRELOAD for a Python that loads sanitized modules: the runtime, and the C++ library, whose throw it wraps."""
    command = shlex.split(compiler().path)
    return " ".join(output([*command, f"-print-file-name={library}"]).strip() for library in ("libasan.so", "libstdc++.so"))


def compiler():
    return _compiler(os.environ.get("CXX") or "g++", path())


@functools.cache  # to ask it takes longer than to load a module
def _compiler(named, path):
    command = shlex.split(named)
    if shutil.which(command[0]) is None:
        raise ToolchainError(f"there is no C++ compiler {command[0]!r}: install g++ 9 or newer, or set CXX to one.")
    # The predefined macros tell the compiler, whether it supports C++17, and the CPU of -march=native.
    macros = output([*command, "-std=c++17", "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    known = dict(re.findall(r"^#define (\w+) (.*)$", macros, re.MULTILINE))
    if int(known.get("__GNUC__", 0)) < 9 and "__clang__" not in known:
        raise ToolchainError(f"{command[0]} is g++ {known.get('__GNUC__', '?')}: install g++ 9 or newer, or set CXX to one.")
    return Tool(shlex.join(command), output([*command, "--version"]).splitlines()[0], macros)


def cuda_home():
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if home:
            return Path(home)
    nvcc = shutil.which("nvcc")
    return Path(nvcc).resolve().parent.parent if nvcc else Path("/usr/local/cuda")


def nvcc(arch=None):
    nvcc = cuda_home() / "bin" / "nvcc"
    if not nvcc.is_file():
        raise ToolchainError(f"there is no {nvcc}: install the CUDA toolkit, or set CUDA_HOME to where it is.")
    version = output([str(nvcc), "--version"]).strip().splitlines()[-1]
    if arch and f"compute_{arch.rstrip('a')}" not in output([str(nvcc), "--list-gpu-arch"]).split():
        raise ToolchainError(f"{nvcc} ({version}) cannot compile for this GPU (sm_{arch}): install a CUDA toolkit that can.")
    return Tool(str(nvcc), version)


def build_for(arch):
    """Build for this architecture from now on, without a look at the present GPU."""
    global _given
    _given = with_its_own(arch)


def gpu_architecture():
    if _given is not None:
        return _given
    import torch

    if torch.version.cuda is None:
        raise ToolchainError(
            f"torch {torch.__version__} is built without CUDA: install a CUDA build of torch, or use the simt backend."
        )
    if not torch.cuda.is_available():
        raise ToolchainError("torch finds no CUDA GPU: run on a machine with one, or use the simt backend.")
    major, minor = torch.cuda.get_device_capability()
    return with_its_own(10 * major + minor)


def with_its_own(arch):
    """The architecture with its specific instructions, if it has any: "90a", but "80"."""
    return f"{arch}a" if arch >= 90 else str(arch)


def output(command, timeout=60):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=clean_environment())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{shlex.join(command)} does not run: {error}. Repair or reinstall it.") from error
    if done.returncode != 0:
        raise ToolchainError(f"{shlex.join(command)} fails: {tail(done.stderr)}\nRepair or reinstall it.")
    return done.stdout


def path():
    return os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])


def clean_environment():
    """The environment for the tools, without the sanitizer's runtime, which would slow down and check the compiler."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | {
        "PATH": path(),
        "LC_ALL": "C",
    }


def tail(text):
    return "\n".join(text.strip().splitlines()[-_LINE_LIMIT:])
