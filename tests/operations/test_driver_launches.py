"""Launches that CUDA's driver repeats without Python (native/driver.h) give the same bits, for every design."""

import importlib

import pytest
import torch

from tests.gate.calls import calls
from tests.gate.child import on
from tests.harness import bits, designs
from tritonkernels import OPS, native

pytestmark = pytest.mark.gpu
CUDA = torch.device("cuda", 0)


@pytest.mark.long
@pytest.mark.parametrize("library, op, design", designs(*OPS, compiled=True))
def test_the_same_bits(monkeypatch, library, op, design):
    """On operands at new addresses and with new values, so that a result of before is not taken for it."""
    monkeypatch.setattr(library, "native", native.load().Repeats())
    monkeypatch.setattr(library.plans, "_plans", {})
    function, learnt = getattr(importlib.import_module(library.package), op), 0
    for call in calls(library, op, design, library.target(CUDA)):
        if call.out or not call.problem.startswith("ragged"):
            continue
        args, kwargs = call.make()

        def result(given, kwargs=kwargs):
            return function(*given, design=design, **dict(zip(kwargs, on(CUDA, kwargs.values()))))

        for _ in range(3):
            result(on(CUDA, args))
        given = on(CUDA, call.make()[0])
        natively = result(given)
        kept, library.native = library.native, None
        exactly = result(given)
        library.native = kept
        assert torch.equal(bits(natively), bits(exactly)) and natively.stride() == exactly.stride(), str(call)
        all_of_them, drivers = library.native.counts()
        assert all_of_them == drivers, str(call)
        learnt += 1
    assert learnt and library.native.counts()[0] >= learnt
