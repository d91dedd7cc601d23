"""perf torch: contestants take turns, compute the same, and are recorded as they come; the page has what was recorded."""

import functools
import json
import time
from types import SimpleNamespace

import torch

from perf.measure import in_torch, records, turns
from perf.render import torch_page
from tests.harness import thorough
from tritonkernels import backend

DEVICE = torch.device(backend.device_type())


class Clock:
    """The host's, where a call is done when it returns."""

    now = staticmethod(time.perf_counter)

    def synchronize(self):
        pass

    def replay(self, run):
        return run


def test_without_a_gpu_it_says_so(capsys, monkeypatch):
    monkeypatch.setattr(in_torch.contenders, "device", lambda: torch.device("cpu"))
    assert in_torch.main(None, None) == 2 and "needs a GPU" in capsys.readouterr().err


def test_the_cpp_that_repeats_calls_is_there_before_anything_is_timed(monkeypatch):
    done = []
    monkeypatch.setenv("TRITONKERNELS_NATIVE", "1")
    monkeypatch.setattr(in_torch.contenders, "device", lambda: SimpleNamespace(type="cuda"))
    monkeypatch.setattr(in_torch, "environment", lambda device, commit: {})
    monkeypatch.setattr(in_torch, "GpuClock", lambda device: None)
    monkeypatch.setattr(turns.native, "load", lambda: done.append("built"))
    monkeypatch.setattr(in_torch, "host_times", lambda *args: done.append("timed") or ())
    assert in_torch.main(SimpleNamespace(commit=None, json=None), None) == 0
    assert done == ["built", "timed"]


def test_contestants_take_turns():
    seen = []
    found = in_torch.in_turns({name: functools.partial(lambda name: seen.append(name) or len(seen), name) for name in "ab"}, 20)
    assert all(sorted(seen[i : i + 2]) == ["a", "b"] for i in range(0, 40, 2)) and seen[::2] != ["a"] * 20 != seen[1::2]
    assert all(t["p20_us"] < t["median_us"] < t["p80_us"] for t in found.values())


def test_host_times_are_of_the_same_computation():
    for (op, mode), contestants in in_torch.calls(DEVICE).items():
        if mode == "compiled":  # takes long: the next test
            continue
        results = {name: call() for name, call in contestants.items()}
        assert set(results) == {"torch", "tritonkernels", "cuda_reference"}
        for name, result in results.items():
            torch.testing.assert_close(result, results["torch"], rtol=2e-3, atol=8e-3, msg=f"{op}, {mode}: {name}")  # fp16 sums
            assert mode == "forward and backward" or result.requires_grad == (mode == "recorded")
        if mode == "forward and backward":
            assert len(results["torch"]) == 3, "of the operand, the weight and the bias"


@thorough
def test_all_times_are_taken(monkeypatch):
    for name, value in {"SIZE": 16, "CALLS": 2, "ROUNDS": 2}.items():
        monkeypatch.setattr(in_torch, name, value)
    found = list(in_torch.host_times(DEVICE, Clock()))
    assert len(found) == (3 * 3 + 2) * 3
    assert all(0 < t.p20_us <= t.median_us <= t.p80_us for t in found)


def test_the_page_has_every_time(tmp_path, monkeypatch):
    environment = {"device": "X1", "date": "2026-01-01", "torch": "2", "triton": "3", "cuda": "13", "commit": "abc"}
    times = [in_torch.Time(f"gemm, {mode}", name, 11.5, 1, 2, environment) for mode in "ab" for name in ("torch", "us")]
    (tmp_path / "x1").mkdir()
    records.write_json(tmp_path / "x1/torch.json", times)
    assert len(json.loads((tmp_path / "x1/torch.json").read_text())["records"]) == 4
    monkeypatch.setattr(torch_page.measured, "RESULTS", tmp_path)
    page = torch_page.markdown()
    for line in ("| gemm, a | 11.5 | 11.5 |", "X1, 2026-01-01, torch 2, Triton 3, CUDA 13"):
        assert line in page, line
