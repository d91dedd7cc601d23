"""Every config of every CUDA design: the same bits in any order of threads and blocks, and nothing for AddressSanitizer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_reference import build
from cuda_reference.launch import LIBRARY
from tests.concurrency.calls import digest
from tests.harness import designs, thorough

HERE = Path(__file__).parent
DESIGNS = [p for p in designs() if p.values[0] is LIBRARY]
ORDERS = ("", "1", "2", "3")  # "": thread by thread, block by block


def digests(monkeypatch, op, design, orders, every_config):
    """{order: hash of all results}, on one OS thread; and in the first two on two."""
    found = {}
    for order, threads in [*((order, "1") for order in orders), *((order, "2") for order in orders[:2])]:
        monkeypatch.setenv("SIMT_ORDER", order)
        monkeypatch.setenv("SIMT_THREADS", threads)
        found[order, threads] = digest(LIBRARY, op, design, every_config=every_config)
    return found


@pytest.mark.parametrize("_, op, design", DESIGNS)
def test_any_order_of_threads_and_blocks_gives_the_same_bits(monkeypatch, _, op, design, everything):
    """`make test` has the first config and two orders."""
    found = digests(monkeypatch, op, design, ORDERS if everything else ORDERS[:2], everything)
    assert len(set(found.values())) == 1, found


def test_a_design_without_its_barriers_gives_other_bits(monkeypatch):
    source = HERE / "kernels/without_barriers.cuh"
    monkeypatch.delenv("TRITONKERNELS_INSTANCES")
    monkeypatch.setattr(build, "load", lambda header, *rest, load=build.load: load(source, *rest))
    found = digests(monkeypatch, "gemm", "tiled", ORDERS, every_config=True)
    assert len({found[order, "1"] for order in ORDERS}) == len(ORDERS), found


@pytest.fixture(scope="module")
def run():
    preload = build.sanitizer_preload()
    if not preload.startswith("/"):
        pytest.skip("the compiler has no libasan")
    environment = {"TRITONKERNELS_SANITIZE": "address", "ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": preload}

    def run(*arguments):
        command = [sys.executable, "-m", "tests.simt.sanitized", *arguments]
        environment_ = os.environ | environment
        return subprocess.run(command, cwd=HERE.parents[1], env=environment_, capture_output=True, text=True, timeout=280)

    return run


@thorough
@pytest.mark.long
def test_no_design_accesses_memory_outside_its_tensors(run):
    """Shared memory included. `make test` has tests/memory, which sees accesses outside of tensors."""
    done = run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{op} {design}" for _, op, design in (p.values for p in DESIGNS)]


@thorough
def test_one_element_too_few_is_found(run):
    done = run("cut")
    assert "ERROR: AddressSanitizer: heap-buffer-overflow" in done.stderr and ".cuh:" in done.stderr, done.stderr
    assert done.stdout == ""
