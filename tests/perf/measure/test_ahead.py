"""Kernels built before the comparison are those that it runs; the comparison reports a failed build."""

import contextlib
import json

import pytest
import torch

import cuda_reference
from cuda_reference import build
from cuda_reference.launch import LIBRARY
from perf.measure import ahead
from perf.measure.contenders import PACKAGES
from perf.measure.suites import SUITES
from tests import children
from tritonkernels.errors import BuildError, UnsupportedError

CPU = torch.device("cpu")


@pytest.fixture
def asked(monkeypatch):
    """The arguments of build.load, which always fails; calls that another test made before are not replayed without it."""
    LIBRARY.forget_plans()
    monkeypatch.delenv("TRITONKERNELS_INSTANCES")
    sources = []

    def load(header, expressions, backend):
        sources.append((header, expressions))
        raise BuildError("not now")

    monkeypatch.setattr(build, "load", load)
    return sources


@pytest.mark.parametrize("case", SUITES["smoke"], ids=lambda case: f"{case.op}-{case.name}")
def test_the_first_kernel_of_a_call_is_among_them(case, asked):
    args, kwargs = case.arguments(0, CPU)
    for name in LIBRARY.names(case.op):
        asked.clear()
        with contextlib.suppress(BuildError, UnsupportedError):
            getattr(cuda_reference, case.op)(*args, design=name, **kwargs)
        assert asked == list(ahead.sources([case], [name], CPU))[:1]


def test_all_are_built_once(asked):
    ahead.build_all(SUITES["smoke"], PACKAGES, None, CPU)
    assert sorted(asked) == sorted(ahead.sources(SUITES["smoke"], None, CPU)) and len(asked) == len(set(asked)) > 20


def test_no_call_compiles_another_triton_kernel():
    run = children.run("-m", "tests.perf.measure.fake_ahead")
    assert run.returncode == 0, run.stderr
    built, calls, again = json.loads(run.stdout)
    assert built > 150 and calls > 150 and not again


def test_it_has_no_bar_where_it_is_to_be_quiet(asked, monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes a terminal of standard error for rich
    for quiet in (False, True):
        ahead.build_all(SUITES["smoke"][:1], PACKAGES, None, CPU, quiet)
        assert (capsys.readouterr().err == "") is quiet
