"""Fixtures of the harness's tests: no CUDA build, and a gemv that does what a test says."""

import dataclasses

import pytest
from stand_ins import Act

from cuda_reference.launch import config_of
from perf.measure import ahead, contenders
from tritonkernels.choice.work import Work
from tritonkernels.design import Design, takes_everything
from tritonkernels.gemv import GEMV
from tritonkernels.launch import LIBRARY
from tritonkernels.operation import Rung, Served


@pytest.fixture
def triton_only(monkeypatch):
    """Without the CUDA package, whose kernels may have to be built first."""
    monkeypatch.setattr(contenders, "PACKAGES", {"triton": "tritonkernels"})
    monkeypatch.setattr(ahead, "build_all", lambda *_: None)
    contenders.device()  # decides Triton's backend


@pytest.fixture
def gemv_does(monkeypatch, triton_only):
    """gemv_does(act): gemv's one design is "stand_in", which calls act(problem, a, x, y, out)."""

    def install(act, refuses=takes_everything):
        def launches(problem, config, a, x, y, scale, out):
            yield Act((1,), act, (problem, a[0], x[0], None if y is None else y[0], out[0]))

        def work(problem, config, target):
            return (Work(1, 32, 0.0, "ieee", 0.0, 0.0, 1),)

        design = Design(
            refuses=refuses, configs=lambda problem, target: [config_of()], launches=launches, work=work, name="stand_in"
        )
        operation = dataclasses.replace(GEMV, own=(Rung("stand_in", "for a test", "nothing"),))
        monkeypatch.setitem(LIBRARY.served, "gemv", Served(operation))
        monkeypatch.setitem(LIBRARY._designs, "gemv", (design,))
        monkeypatch.setattr(LIBRARY, "_choices", {})

    return install
