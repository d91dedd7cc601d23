"""How properties run: a fixed number of examples from one seed, so that seed and depth alone reproduce a failure.

The seed is 0, or the one given as --hypothesis-seed. `make fuzz MINUTES=n` runs this folder on fresh seeds (fuzz.py), and
deeper: with --depth=n times as many examples.
"""

import importlib
import pkgutil
import random

import hypothesis
import pytest

from tritonkernels import backend


@pytest.fixture(scope="session")
def everything_imported():
    """Import everything: Hypothesis draws some numbers from imported sources, and would not reproduce examples otherwise."""
    backend.name()  # prepares Triton, which design files import
    for package in ("tritonkernels", "cuda_reference", "perf"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


@pytest.fixture
def for_all(request, everything_imported):
    """for_all(strategy, examples, check): check(example) holds for that many examples; a failure says how to repeat it.

    A check returns whether its example counts. If fewer than half do, the strategy draws the wrong ones.
    """
    given, depth = request.config.getoption("--hypothesis-seed"), request.config.getoption("--depth")
    seed = random.SystemRandom().randrange(2**31) if given == "random" else int(given or 0)

    def run(strategy, examples, check):
        examples, counted = examples * depth, []

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
            counted.append(check(example))

        try:
            holds()
            assert 2 * sum(counted) >= examples, f"{sum(counted)} of {examples} examples counted, {len(counted)} were drawn"
        except Exception as error:
            note = f"Reproduce: make fuzz SEED={seed} DEPTH={depth} ONLY='{request.node.nodeid}'"
            error.__notes__ = [*getattr(error, "__notes__", []), note]  # add_note, which Python 3.10 lacks
            raise

    return run
