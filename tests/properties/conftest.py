"""How properties run: a fixed number of examples from one seed, so that the seed alone brings a failure back.

The seed is 0, or the one given as --hypothesis-seed. `make fuzz MINUTES=n` runs this folder on fresh seeds (fuzz.py).
"""

import importlib
import pkgutil
import random

import hypothesis
import pytest

from tritonkernels import backend


@pytest.fixture(scope="session")
def everything_imported():
    """Hypothesis draws some numbers from the sources that it finds imported: all of them, or a seed would not be enough."""
    backend.name()  # prepares Triton, which design files import
    for package in ("tritonkernels", "cuda_reference", "perf"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


@pytest.fixture
def for_all(request, everything_imported):
    """for_all(strategy, examples, check): check(example) holds for that many examples; a failure says how to repeat it."""
    given = request.config.getoption("--hypothesis-seed")
    seed = random.SystemRandom().randrange(2**31) if given == "random" else int(given or 0)

    def run(strategy, examples, check):
        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=examples,
            database=None,  # a failure is kept by its seed, not by a file
            deadline=None,  # interpreted kernels take as long as they take
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
        @hypothesis.given(strategy)
        def holds(example):
            check(example)

        try:
            holds()
        except Exception as error:
            note = f"Reproduce: make fuzz SEED={seed} ONLY='{request.node.nodeid}'"
            error.__notes__ = [*getattr(error, "__notes__", []), note]  # add_note, which Python 3.10 lacks
            raise

    return run
