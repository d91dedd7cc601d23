"""torch's ways that take seconds to find: searches by threads of their own, and a compiled gemv; and names of kernels."""

import threading
import types

import pytest
import torch

from perf.measure import baselines, profiled, ways
from tritonkernels.errors import UnsupportedError


def test_convolutions_are_searched_for_in_both_layouts_and_gemv_is_compiled():
    for op in ("conv2d", "conv2d_input", "conv2d_weight"):
        names = [name for name, *_ in ways.WAYS[op]]
        layouts = [name for name in names if "search" not in name and "patches" not in name]
        assert len(layouts) == 2 and "other layout" in layouts[1]
        assert {f"{name}, search {n}" for name in layouts for n in (2, 3)} <= set(names) and len(set(names)) == len(names)
    assert [name for name, *_ in ways.WAYS["gemv"]] == ["addmv", "torch.compile"]
    assert ways.WAYS["matmul"] == baselines.BASELINES["matmul"] and "torch.compile" not in str(baselines.BASELINES["gemv"])


def test_a_search_has_a_thread_of_its_own_and_the_caller_s_stream(monkeypatch):
    streams, seen = [], []

    class On:
        def __init__(self, stream):
            streams.append((stream, threading.current_thread()))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: f"stream of {threading.current_thread().name}")
    monkeypatch.setattr(torch.cuda, "stream", On)

    def call(x, *, out):
        seen.append(threading.current_thread())
        return x + out

    second, third = (ways.searched_by(number, call) for number in (2, 3))
    assert [second(1, out=2), second(2, out=2), third(3, out=2)] == [3, 4, 5]
    assert seen[0] is seen[1] is not seen[2] and threading.current_thread() not in seen, "its cache is that thread's"
    assert {stream for stream, _ in streams} == {f"stream of {threading.current_thread().name}"}
    assert [thread for _, thread in streams] == seen
    with pytest.raises(UnsupportedError, match="as ever"):
        ways.searched_by(2, lambda: (_ for _ in ()).throw(UnsupportedError("as ever")))()


def test_what_is_for_gpus_is_refused_elsewhere():
    with pytest.raises(UnsupportedError, match="GPUs"):
        ways.searched_by(2, baselines.conv2d)(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3), out=None)
    with pytest.raises(UnsupportedError, match="GPUs"):
        ways.compiled_gemv(torch.ones(3, 2), torch.ones(2), out=torch.ones(3))


def test_a_gemv_is_compiled_once_for_each_size(monkeypatch):
    made = []
    monkeypatch.setattr(ways, "compiled", lambda function: made.append(1) or function)
    monkeypatch.setattr(ways, "_tuned", {})

    def on_a_gpu(*size):
        """What looks like a CUDA tensor to a caller who asks for its device."""
        return type("OnGpu", (torch.Tensor,), {"device": types.SimpleNamespace(type="cuda")})(torch.randn(*size))

    for a, x in ((on_a_gpu(3, 2), torch.randn(2)), (on_a_gpu(3, 2), torch.randn(2)), (on_a_gpu(2, 3, 4), torch.randn(2, 4))):
        result = ways.compiled_gemv(a, x, out=None)
        torch.testing.assert_close(result.as_subclass(torch.Tensor), (a.as_subclass(torch.Tensor) @ x[..., None])[..., 0])
    assert len(made) == 2
    with pytest.raises(UnsupportedError, match="without addends"):
        ways.compiled_gemv(on_a_gpu(3, 2), torch.randn(2), torch.randn(3), out=None)


def test_kernels_are_named_in_the_order_of_their_starts(monkeypatch):
    def event(name, start, kind):
        return types.SimpleNamespace(name=name, device_type=kind, time_range=types.SimpleNamespace(start=start))

    gpu, cpu = profiled.DeviceType.CUDA, profiled.DeviceType.CPU
    events = [event("second", 5, gpu), event("aten::mm", 0, cpu), event("first", 3, gpu), event("Context Sync", 4, gpu)]

    class Profile:
        def __init__(self, activities):
            assert activities == [torch.profiler.ProfilerActivity.CUDA]

        def __enter__(self):
            return types.SimpleNamespace(events=lambda: events)

        def __exit__(self, *_):
            done.append("stopped")

    done = []
    monkeypatch.setattr(torch.profiler, "profile", Profile)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("waited"))
    assert profiled.kernels(lambda: done.append("called")) == ["first", "second"]
    assert done == ["called", "waited", "stopped"]
