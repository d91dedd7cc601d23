"""A build with TRITONKERNELS_SANITIZE=address finds accesses outside of global, shared and local arrays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_reference import build

SOURCE = Path(__file__).parent / "kernels/memory.cuh"
SCRIPT = f"""
import sys, torch
from cuda_reference.build import load
names = ["throws", "global_read", "global_write", "shared_write<64>", "dynamic_write", "local_write<64>"]
kernels = load({str(SOURCE)!r}, ["memory::" + name for name in names], "simt")
try:  # a fault that drops fibers half-way must not poison their stacks for the next launch
    kernels["memory::throws"]((1, 1, 1), (64, 1, 1), 0, 0, 3)
except RuntimeError as error:
    print(error)
name, beyond = sys.argv[1], int(sys.argv[2])
source, out = torch.zeros(64), torch.zeros(64)
pointers = [t.data_ptr() for t in ((source, out) if name == "global_read" else (out,))]
kernels["memory::" + name]((1, 1, 1), (64, 1, 1), 256, 0, *pointers, beyond)
print("inside")
"""


def run(*args, **environment):
    environment = os.environ | {"TRITONKERNELS_SANITIZE": "address", "ASAN_OPTIONS": "detect_leaks=0"} | environment
    command = [sys.executable, "-c", SCRIPT, *args]
    return subprocess.run(command, env=environment, cwd=SOURCE.parents[3], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def preload():
    path = build.sanitizer_preload()
    if not path.startswith("/"):
        pytest.skip("the compiler has no libasan")
    return path


def test_without_the_runtime_there_is_an_error_not_a_dead_process(preload):
    done = run("global_read", "0")
    assert "BuildError: an address-sanitized module needs a Python started with LD_PRELOAD=" in done.stderr


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("global_read", "heap-buffer-overflow"),
        ("global_write", "heap-buffer-overflow"),
        ("shared_write<64>", "global-buffer-overflow"),
        ("dynamic_write", "use-after-poison"),
        ("local_write<64>", "stack-buffer-overflow"),
    ],
)
def test_one_access_outside_is_found(preload, name, report):
    done = run(name, "1", LD_PRELOAD=preload)
    assert "thread (3, 0, 0): __trap()" in done.stdout
    assert f"ERROR: AddressSanitizer: {report}" in done.stderr and "memory.cuh" in done.stderr
    assert "inside" not in done.stdout


def test_accesses_inside_are_no_error(preload):
    done = run("shared_write<64>", "0", LD_PRELOAD=preload)
    assert done.returncode == 0 and "inside" in done.stdout, done.stderr
