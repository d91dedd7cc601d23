"""The inputs of a build: its source, flags and tools, and a name that contains a hash of them all."""

import dataclasses
import functools
import hashlib
import importlib.machinery
import re
import sys
import time

from tritonkernels.errors import BuildError

from . import launch_bounds, toolchain
from .toolchain import ROOT

OVERLAP = "common/overlap.cuh"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The inputs of a build."""

    name: str
    backend: str
    source: str
    flags: tuple
    suffix: str = ".so"  # of what is built
    asked: float = dataclasses.field(default_factory=time.monotonic, compare=False)  # when
    note: str = ""  # the file in the cache folder that keeps how long such a build takes; none if that is a second


def module(header, expressions, backend):
    """The recipe of a Python module of these kernels."""
    path = (ROOT / header).resolve()
    if not path.is_file():
        raise BuildError(f"there is no kernel source {path}.")
    files = sources([path, ROOT / "common/binding.cuh"])
    source = _source(path, expressions, backend, files)
    prefix = f"{backend}_{path.parent.name}_{path.stem}"
    note = f"{prefix}_{len(expressions)}.seconds" if backend == "cuda" else ""
    outside = None if backend == "cuda" or path.is_relative_to(ROOT) else path.parent
    recipe = _named(prefix, backend, source, files | sources(_of_runtime(backend)), outside=outside)
    return dataclasses.replace(recipe, note=note)


def runtime(backend):
    """The recipe of what every module is linked with: it takes the compiler longer than many a kernel."""
    files = _of_runtime(backend)
    source = "".join(f'#include "{file.relative_to(ROOT)}"\n' for file in sorted(files) if file.suffix != ".h")
    options = [] if backend == "cuda" else ["-O2"]  # built once, and every launch runs it
    return _named(f"{backend}_runtime", backend, source, sources(files), ".o", options)


def headers(backend):
    """The recipe of what every module of the emulation includes, precompiled: g++ reads it half a second faster."""
    files = sources([ROOT / "common/binding.cuh", *_of_runtime(backend)])
    return _named(f"{backend}_headers", backend, '#include "common/binding.cuh"\n', files, ".gch")


def _of_runtime(backend):
    """What Python calls, and all of the emulation: kernels include its headers as if they were CUDA's."""
    emulation = () if backend == "cuda" else ("*.h", "*.cpp")
    return {ROOT / "common/python.cuh"} | {file for pattern in emulation for file in (ROOT / "simt").glob(pattern)}


def _named(prefix, backend, source, files, suffix=".so", options=(), outside=None):
    """The recipe, whose name holds a digest of all that goes in but the places of this package and of a kernel's folder that is
    `outside` of it: checkouts share their builds.

    Precompiled headers they do not share: the lines in them are where they were precompiled, whatever -ffile-prefix-map says.
    """
    import torch

    flags, tools = toolchain.flags(backend)
    flags = [*flags, *options, *([f"-ffile-prefix-map={outside}={toolchain.OUTSIDE}"] if outside is not None else [])]
    places = [str(place) for place in (ROOT, outside) if place is not None and suffix != ".gch"]
    digest = hashlib.sha256()
    for part in (source, *flags, *tools, torch.__version__, sys.version, importlib.machinery.EXTENSION_SUFFIXES[0]):
        digest.update(functools.reduce(lambda text, place: text.replace(place, ""), places, part).encode() + b"\0")
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    prefix = re.sub(r"\W+", "_", prefix)
    return Recipe(f"{prefix}_{digest.hexdigest()[:16]}", backend, source, tuple(flags), suffix)


@functools.cache
def overlaps(header: str) -> bool:
    """Whether the header's kernels may begin on this GPU while those before them run: it includes overlap.cuh, so they wait."""
    architecture = re.search(r"sm_(\d+)", " ".join(toolchain.flags("cuda")[0]))[1]
    return int(architecture) >= 90 and ROOT / OVERLAP in sources([ROOT / header])


def _source(path, expressions, backend, files):
    header = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    constants, bounds = ([], []) if backend == "cuda" else launch_bounds.lines(expressions, sorted(files))
    traced, early = backend == "trace", str(backend == "cuda" and overlaps(str(header))).lower()
    lines = [
        '#include "common/binding.cuh"',
        f'#include "{header}"',
        *(['#include "simt/trace_recorder.h"'] if traced else []),
        *constants,
        "KERNEL_MODULE(MODULE_NAME, module) {",
        *(f'    bind(module, "{expression}", {expression}, {early});' for expression in expressions),
        *bounds,
        *(["    bind_trace(module);"] if traced else []),
        "}",
    ]
    return "\n".join(lines) + "\n"


def sources(paths):
    """The files, and all files that they include in quotes."""
    found, todo = set(), list(paths)
    while todo:
        path = todo.pop().resolve()
        if path in found:
            continue
        found.add(path)
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE):
            todo += [candidate for candidate in (path.parent / name, ROOT / name) if candidate.is_file()][:1]
    return found
