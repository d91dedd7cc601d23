"""Kernels compiled by nvcc for tests of their machine code, and kept as the library's own builds are: until a source changes.

Some take ten seconds and more, far longer than to look at what they give.
"""

import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import cuda_reference
from cuda_reference import recipes
from tritonkernels import cache

ROOT = Path(cuda_reference.__file__).parent
needed = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")


@dataclass(frozen=True)
class Compiled:
    cubin: bytes
    ptx: str
    said: str  # by nvcc


def compiled(architecture, headers, expressions, *options):
    """These kernels in one translation unit, since headers take most of the time."""
    includes = "".join(f'#include "{header}"\n' for header in dict.fromkeys(headers))
    unit = includes + "".join(f"auto kernel_{i} = &{name};\n" for i, name in enumerate(dict.fromkeys(expressions)))
    command = ("nvcc", "-std=c++17", "-cubin", f"-arch=sm_{architecture}", *options)
    found = _kept(unit, command, headers)
    return Compiled(bytes.fromhex(found["cubin"]), found["ptx"], found["said"])


def ptx(architecture, headers, text):
    """The PTX of a text with these headers: without ptxas, which takes longer than the rest."""
    unit = "".join(f'#include "{header}"\n' for header in headers) + text
    return _kept(unit, ("nvcc", "-std=c++17", "-ptx", f"-arch=sm_{architecture}"), headers)["ptx"]


def _kept(unit, command, headers):
    """What the compiler gives, or gave last time."""
    digest = hashlib.sha256("\0".join((unit, *command, _version())).encode())
    for file in sorted(recipes.sources(ROOT / header for header in headers)):
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    name = f"nvcc_{digest.hexdigest()[:16]}"
    if (kept := cache.find(name, ".json")) is None:
        cache.store(name, lambda folder: (folder / f"{name}.json").write_text(json.dumps(_compile(unit, command))), ".json")
        kept = cache.find(name, ".json")
    with open(kept) as file:
        return json.load(file)


def _compile(unit, command):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "unit.cu").write_text(unit)
        command = [*command, "--keep", "--keep-dir", ".", "-I", ROOT, "unit.cu"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        cubin, ptx = Path(folder, "unit.cubin"), Path(folder, "unit.ptx").read_text()
        return {"cubin": cubin.read_bytes().hex() if cubin.exists() else None, "ptx": ptx, "said": run.stderr}


@functools.cache
def _version():
    """The versions of nvcc and of the host's compiler, whose headers it includes."""
    commands = ["nvcc", "--version"], [os.environ.get("CXX") or "g++", "--version"]
    return "".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in commands)
