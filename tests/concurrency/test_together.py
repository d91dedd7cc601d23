"""Threads that concurrently call different designs and shapes of both packages, with cold and warm caches."""

import os

from tests import children
from tests.concurrency.calls import COMBINING
from tests.harness import runnable_designs, thorough

BUILT = ("cuda_reference-gemm-rasterized", "cuda_reference-gemv-vectorized")  # two builds: enough to run side by side
INTERPRETED = ("tritonkernels-gemm-rasterized", "tritonkernels-gemv-vectorized", "tritonkernels-conv2d-depthwise")


def run(*designs, **environment):
    environment = os.environ | {"TRITONKERNELS_BACKEND": "interpreter"} | environment
    done = children.run("-m", "tests.concurrency.together", *designs, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("interpreter") <= 1, "the backend is chosen once, and announced once"


@thorough  # of processes test_processes.py has it, of threads test_first_calls.py
def test_cold_with_nothing_built(tmp_path):
    run(*BUILT, *INTERPRETED, TRITONKERNELS_CACHE=str(tmp_path / "cache"))
    assert len(list(tmp_path.glob("cache/*/*.so"))) == len(BUILT), "each module is built once"


def test_every_design_of_both_packages(every_cuda_design_built, everything):
    """`make test` has those that combine."""
    run(*[] if everything else [p.id for p in runnable_designs() if p.values[2] in COMBINING])
