"""A build with TRITONKERNELS_SANITIZE=address finds accesses outside of global, shared and local arrays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_reference import build
from tests.harness import thorough

pytestmark = thorough

SOURCE = Path(__file__).parent / "kernels/memory.cuh"
FAULTS = {
    "global_read": "heap-buffer-overflow",
    "global_write": "heap-buffer-overflow",
    "shared_write<64>": "global-buffer-overflow",
    "dynamic_write": "use-after-poison",
    "local_write<64>": "stack-buffer-overflow",
}
INSIDE = "shared_write<64>"
# Forks for each [kernel, elements beyond its array], since a fault ends a process; prints [exit status, stdout, stderr] of each
SCRIPT = f"""
import json, os, sys, torch
from pathlib import Path
from cuda_reference.build import load
names = ["throws", *{list(FAULTS)}]
kernels = load({str(SOURCE)!r}, ["memory::" + name for name in names], "simt")

def call(name, beyond):
    try:  # a fault that drops fibers half-way must not poison their stacks for the next launch
        kernels["memory::throws"]((1, 1, 1), (64, 1, 1), 0, 0, 3)
    except RuntimeError as error:
        print(error, flush=True)
    source, out = torch.zeros(64), torch.zeros(64)
    pointers = [t.data_ptr() for t in ((source, out) if name == "global_read" else (out,))]
    kernels["memory::" + name]((1, 1, 1), (64, 1, 1), 256, 0, *pointers, beyond)
    print("inside", flush=True)

ended = []
for number, case in enumerate(json.loads(sys.argv[1])):
    files = [Path(sys.argv[2], f"{{number}}.{{name}}") for name in ("stdout", "stderr")]
    if os.fork() == 0:
        for descriptor, file in enumerate(files, start=1):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
        call(*case)
        os._exit(0)
    ended.append([os.waitstatus_to_exitcode(os.wait()[1]), *(file.read_text() for file in files)])
print(json.dumps(ended))
"""


def run(cases, folder, **environment):
    environment = os.environ | {"TRITONKERNELS_SANITIZE": "address", "ASAN_OPTIONS": "detect_leaks=0"} | environment
    command = [sys.executable, "-c", SCRIPT, json.dumps(cases), folder]
    return subprocess.run(command, env=environment, cwd=SOURCE.parents[3], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def preload():
    path = build.sanitizer_preload()
    if not path.startswith("/"):
        pytest.skip("the compiler has no libasan")
    return path


@pytest.fixture(scope="module")
def ended(preload, tmp_path_factory):
    """{(kernel, elements beyond its array): the process that ran it}"""
    cases = [*((name, 1) for name in FAULTS), (INSIDE, 0)]
    done = run(cases, tmp_path_factory.mktemp("faults"), LD_PRELOAD=preload)
    assert done.returncode == 0, done.stderr
    return {case: subprocess.CompletedProcess(case, *found) for case, found in zip(cases, json.loads(done.stdout))}


def test_without_the_runtime_there_is_an_error_not_a_dead_process(preload, tmp_path):
    done = run([(INSIDE, 0)], tmp_path)
    assert "BuildError: an address-sanitized module needs a Python started with LD_PRELOAD=" in done.stderr


@pytest.mark.parametrize("name", FAULTS)
def test_one_access_outside_is_found(ended, name):
    done = ended[name, 1]
    assert "thread (3, 0, 0): __trap()" in done.stdout
    assert f"ERROR: AddressSanitizer: {FAULTS[name]}" in done.stderr and "memory.cuh" in done.stderr
    assert "inside" not in done.stdout


def test_accesses_inside_are_no_error(ended):
    done = ended[INSIDE, 0]
    assert done.returncode == 0 and "inside" in done.stdout, done.stderr
