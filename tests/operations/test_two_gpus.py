"""Two GPUs: whichever is current, a call runs on its operands' GPU, with the workspaces, counters and plans of that one."""

import functools
import importlib

import pytest
import torch

from tests.harness import LIBRARIES, Size, built, designs, prepare, random, run_checked, suited, taken
from tritonkernels import native, plans, workspace
from tritonkernels.errors import DeviceError
from tritonkernels.numerics import judge

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two GPUs"),
]
SHAPES = {  # large enough to be split over programs if the design can
    "gemm": ((70, 1037), (1037, 45)),
    "gemv": ((9, 70001), (70001,)),
    "conv2d": ((2, 6, 9, 21), (7, 6, 3, 3)),
    "conv2d_input": (Size((2, 6, 9, 21)), (7, 6, 3, 3), (2, 7, 7, 19)),
    "conv2d_weight": ((2, 6, 9, 21), Size((7, 6, 3, 3)), (2, 7, 7, 19)),
    "conv2d_bias": ((2, 7, 70, 219),),
    "matmul": ((70, 1037), (1037, 45)),
}


@pytest.mark.parametrize("library, op, design", designs())
def test_a_call_runs_on_the_device_of_its_operands(library, op, design):
    """On each device while the other one is current, and once more with the counters of the first call."""
    dtype, options = taken(library, op, design)
    shapes, _ = suited(library, op, design, SHAPES[op])
    for _ in range(2):
        for current, device in ((0, "cuda:1"), (1, "cuda:0")):
            with torch.cuda.device(current):
                operands = built(shapes, functools.partial(random, dtype=dtype, device=device))
                result, _ = run_checked(library, op, design, *operands, **options)
                assert result.device == torch.device(device) and torch.cuda.current_device() == current


CALLS = {  # as a user makes them, without a named design
    "gemm": lambda device: ((random(70, 1037, device=device), random(1037, 45, device=device)), {}),
    "gemv": lambda device: ((random(9, 70001, device=device), random(70001, device=device)), {}),
    "conv2d": lambda device: ((random(2, 6, 9, 21, device=device), random(7, 6, 3, 3, device=device)), {}),
    "matmul": lambda device: ((random(70, 1037, device=device).half(), random(1037, 45, device=device).half()), {}),
}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
@pytest.mark.parametrize("op", CALLS)
def test_each_device_has_plans_of_its_own(monkeypatch, library, op):
    monkeypatch.setattr(library.plans, "_plans", {})
    repeated, repeat = [], plans.Plan.repeat

    def counted(plan, tensors):
        result = repeat(plan, tensors)
        repeated.append((plan.device, result is not None))
        return result

    monkeypatch.setattr(plans.Plan, "repeat", counted)
    function = getattr(importlib.import_module(library.package), op)
    for _ in range(4):
        for device in ("cuda:0", "cuda:1"):
            args, kwargs = CALLS[op](device)
            result = function(*args, **kwargs)
            expected = library.run(prepare(op, *args, **kwargs))
            assert result.device == torch.device(device) and torch.equal(result, expected)
            assert torch.cuda.current_device() == 0
    assert repeated == [(torch.device("cuda", index), True) for _ in range(2) for index in (0, 1)]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
@pytest.mark.parametrize("op", CALLS)
def test_native_calls_run_on_the_device_of_their_operands(monkeypatch, library, op):
    monkeypatch.setattr(library, "native", native.load().Repeats())
    monkeypatch.setattr(library.plans, "_plans", {})
    for _ in range(6):
        for current, device in ((0, "cuda:1"), (1, "cuda:0")):
            args, _ = CALLS[op](device)
            with torch.cuda.device(current):
                result = getattr(importlib.import_module(library.package), op)(*args)
                assert result.device == torch.device(device) and torch.cuda.current_device() == current
            assert judge(prepare(op, *args).problem, result, *args).ok
    monkeypatch.setattr(library, "call", None)  # the seventh has no need of it
    assert torch.equal(getattr(importlib.import_module(library.package), op)(*args), result)


def test_each_device_has_counters_of_its_own():
    on = [torch.empty(1, device=f"cuda:{index}") for index in (0, 1)]
    counters = [workspace.counters(64, out) for out in on]
    assert [c.device for c in counters] == [out.device for out in on]
    assert all(not c.any() for c in counters)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_operands_on_two_devices_are_refused(library):
    a, b = random(16, 16, device="cuda:0"), random(16, 16, device="cuda:1")
    with pytest.raises(DeviceError):
        importlib.import_module(library.package).gemm(a, b)
