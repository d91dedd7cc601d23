"""What is timed and recorded, with a stand-in for the GPU's timing loop."""

import functools
import importlib
import types
from dataclasses import replace

import pytest
import torch
from stand_ins import right

from perf.measure import baselines, comparison, timing
from perf.measure.cases import conv2d, gemm, gemv, matmul
from perf.measure.check import Output
from perf.measure.comparison import Comparison
from perf.measure.monitor import Monitor, State
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

CASE = gemv(64, 32)
THROTTLED = State(1200.0, 700.0, 80.0, "power cap")
STATE = State(1755.0, 480.0, 51.0, "")
MEDIANS_MS = {"stand_in": 0.02, "addmv": 0.05, "faster": 0.03, "slower": 0.09}


def took(median_ms, p20=1.0, p80=1.0, exposed=0.0, calls=1):
    return timing.Timing(median_ms, p20, p80, 3, 0, exposed, 0.007, True, calls)


@pytest.fixture
def timed(monkeypatch, gemv_does):
    """timed(act, *states): the records by design of a comparison that believes it has a GPU, which is in each of the states
    in turn and stays in the last one; the loop runs everything three times."""
    states = []

    def interleaved(runs, clock, seed, warm, check):
        assert not warm
        for _ in range(3):
            for reset, calls in runs.values():
                reset()
                timing._do(calls)
        for name, (_, calls) in runs.items():
            check(name, lambda before, after, calls=calls: (before(), timing._do(calls), after())[-1])
        designs = ["stand_in", *(name for name, *_ in baselines.BASELINES["gemv"])][1 - len(runs) :]
        medians = {**dict(zip(runs, map(MEDIANS_MS.get, designs))), comparison.AGAIN: 0.051}
        return {name: took(medians[name], 0.01, 0.09, 0.25) for name in runs}

    monkeypatch.setattr(timing, "interleaved", interleaved)
    monkeypatch.setattr(timing, "in_a_row", lambda runs, clock: dict.fromkeys(runs, 1))
    monkeypatch.setattr(Monitor, "since", lambda self, started: states[0] if len(states) == 1 else states.pop(0))
    monkeypatch.setattr(Target, "live", lambda device: Target.named("h200"))

    def run(act, *given, **options):
        states[:] = given or [STATE]
        gemv_does(act)
        compared = Comparison("smoke", 0, None, torch.device("cpu"), **options)
        compared._clock = types.SimpleNamespace(l2_bytes=2**16)
        compared.run(CASE)
        return {r.design: r for r in compared.records}

    return run


def test_a_right_design_is_timed(timed):
    ours, torchs = timed(right)["stand_in"], timed(right)["addmv"]
    assert (ours.median_ms, ours.p20_ms, ours.p80_ms, ours.rounds, ours.exposed) == (0.02, 0.01, 0.09, 3, 0.25)
    assert (ours.call_ms, ours.replayed) == (0.007, True)
    assert ours.ratio_to_torch == pytest.approx(2.5)
    assert torchs.ratio_to_torch == 1.0
    assert ours.gbps == pytest.approx(4 * (64 * 32 + 32 + 64) / 0.02e-3 / 1e9)
    assert ours.tflops == pytest.approx((2 * 64 * 32 + 64) / 0.02e-3 / 1e12)
    assert (ours.target, ours.bound_by) == ("h200", "memory")
    assert (ours.sm_clock_mhz, ours.power_w, ours.temperature_c, ours.throttled) == STATE
    assert (ours.again_ms, torchs.again_ms) == (None, 0.051)


@pytest.mark.parametrize("names", ["faster addmv slower", "slower faster addmv", "addmv slower faster"])
def test_the_ratio_is_to_torch_s_fastest_function(timed, monkeypatch, names):
    ways = tuple((name, *baselines.BASELINES["gemv"][0][1:]) for name in names.split())
    monkeypatch.setitem(baselines.BASELINES, "gemv", ways)
    ratios = {design: row.ratio_to_torch for design, row in timed(right).items()}
    assert ratios == {
        "stand_in": pytest.approx(1.5),
        "faster": 1.0,
        "addmv": pytest.approx(0.6),
        "slower": pytest.approx(1 / 3),
    }


@pytest.mark.parametrize(
    "states, kept", [([THROTTLED, STATE], STATE), ([THROTTLED] * 2, THROTTLED), ([STATE, THROTTLED], STATE)]
)
def test_a_throttled_case_is_timed_once_more(timed, monkeypatch, states, kept):
    times, interleaved = [], timing.interleaved
    monkeypatch.setattr(timing, "interleaved", lambda *args: times.append(1) or interleaved(*args))
    monkeypatch.setattr(comparison, "PAUSE_S", 0.0)
    row = timed(right, *states)["stand_in"]
    assert (row.sm_clock_mhz, row.throttled) == (kept.sm_clock_mhz, kept.throttled)
    assert len(times) == 1 + (states[0] is THROTTLED)


def test_a_wrong_design_is_not_timed(timed):
    calls = []

    def zeros(problem, a, x, y, out):
        calls.append(1)
        out.zero_()

    rows = timed(zeros)
    assert len(calls) == 1
    assert (rows["stand_in"].ok, rows["stand_in"].median_ms) == (False, None)
    assert rows["addmv"].median_ms == 0.05


def test_a_design_that_stops_working_once_it_was_checked_is_caught(timed):
    calls = []

    def only_once(problem, a, x, y, out):
        calls.append(1)
        if len(calls) == 1:
            right(problem, a, x, y, out)

    row = timed(only_once)["stand_in"]
    assert not row.ok
    assert "64 of 64 elements were not written" in row.message
    assert (row.median_ms, row.ratio_to_torch) == (None, None)


def test_every_timed_run_has_other_operands_and_a_poisoned_result(timed):
    """Else a kernel could keep what it once computed, or do nothing."""
    seen = []

    def noting(problem, a, x, y, out):
        seen.append((bool(out.isnan().all()), *(float(t.double().sum()) for t in (a, x))))
        right(problem, a, x, y, out)

    assert timed(noting)["stand_in"].ok
    poisoned, *sums = zip(*seen)
    assert all(poisoned) and len(seen) > 4, "the first run, three timed ones, the check of the last"
    assert all(len(set(of_tensor)) == len(seen) for of_tensor in sums)


def test_a_result_of_its_own_is_poisoned_too():
    result = torch.zeros(4)
    entry = comparison.Entry(None, None, Output(result), lambda: result, writes_out=False, transform=None)
    entry.run()
    entry.poison()
    assert result.isnan().all() and entry.output.tensor.isnan().all()


def test_a_fault_while_timing_fails_the_rows(timed):
    calls = []

    def second_breaks(problem, a, x, y, out):
        calls.append(1)
        if len(calls) > 1:
            raise ValueError("misaligned")
        right(problem, a, x, y, out)

    row = timed(second_breaks)["stand_in"]
    assert (row.ok, row.message, row.median_ms) == (False, "ValueError: misaligned", None)


def test_no_ratio_to_a_torch_of_another_precision(timed, monkeypatch):
    monkeypatch.setattr(baselines, "precision_of", lambda problem, device: "tf32")
    assert timed(right)["stand_in"].ratio_to_torch is None


def test_no_ratio_to_a_wrong_torch(timed, monkeypatch):
    monkeypatch.setitem(baselines.BASELINES, "gemv", (("addmv", lambda *args, out, **kwargs: out.zero_(), True),))
    assert timed(right)["stand_in"].ratio_to_torch is None


def test_a_thorough_comparison_has_all_of_torch_s_ways_and_names_kernels(timed, monkeypatch):
    """A wrong row of torch, too, as one wants to know whose kernel it is."""
    more = ("wrong", lambda *args, out, **kwargs: out.zero_(), True), ("refuses", refuses, True)
    monkeypatch.setitem(comparison.ways.WAYS, "gemv", (*baselines.BASELINES["gemv"], *more))
    monkeypatch.setattr(comparison.profiled, "kernels", lambda call: call() or [call.func.__self__.record.design])
    rows = timed(right, thorough=True)
    assert {design: (row.ok, row.kernels) for design, row in rows.items()} == {
        "stand_in": (True, ["stand_in"]),
        "addmv": (True, ["addmv"]),
        "wrong": (False, ["wrong"]),
    }
    assert rows["stand_in"].ratio_to_torch == pytest.approx(2.5)
    assert [row.kernels for row in timed(right).values()] == [None, None]


def refuses(*args, **kwargs):
    raise UnsupportedError("not this")


def test_what_torch_keeps_of_operands_is_made_before_a_timed_run(monkeypatch, triton_only):
    """Filters in the other layout would else be converted in the graph that is timed."""
    converted = []

    def interleaved(runs, clock, seed, warm, check):
        converted.append(len(baselines._filters))
        return {name: took(1.0) for name in runs}

    monkeypatch.setattr(timing, "interleaved", interleaved)
    monkeypatch.setattr(timing, "in_a_row", lambda runs, clock: dict.fromkeys(runs, 3))
    monkeypatch.setattr(Target, "live", lambda device: Target.named("h200"))
    baselines._filters.clear()
    compared = Comparison("smoke", 0, ["none"], torch.device("cpu"))
    compared._clock = types.SimpleNamespace(l2_bytes=2**16)
    compared.run(conv2d((2, 3, 9, 8), (4, 3, 3, 3)))
    assert converted == [3]


def test_no_ratio_to_a_torch_that_was_wrong_after_all(timed, monkeypatch):
    calls = []

    def only_once(a, x, *, out):
        calls.append(1)
        return out.copy_(a.double() @ x.double()) if len(calls) == 1 else out.zero_()

    monkeypatch.setitem(baselines.BASELINES, "gemv", (("addmv", only_once, True),))
    rows = timed(right)
    assert not rows["addmv"].ok
    assert (rows["stand_in"].ok, rows["stand_in"].ratio_to_torch) == (True, None)


def test_a_lost_gpu_differs_from_a_failed_run(timed, monkeypatch):
    def lost(checker):
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(comparison.Checker, "restore", lost)
    with pytest.raises(comparison.GpuLost, match="unspecified launch failure"):
        timed(right)


@pytest.mark.parametrize(
    "cache, calls, copies, warm",
    [
        ("flushed", {0: 1, 1: 1}, {0: 1, 1: 1}, False),
        ("flushed", {0: 5, 1: 2}, {0: 5, 1: 2}, False),  # short calls
        ("flushed", {0: 99, 1: 2}, {0: 40, 1: 2}, False),  # as many as fit into 40 times L2
        ("rotating", None, {0: 3, 1: 3}, False),
        ("resident", None, {0: 1, 1: 1}, True),
    ],
)
def test_the_operands_of_calls_in_a_row(monkeypatch, gemv_does, cache, calls, copies, warm):
    """Each call has operands of its own, equal and with the same strides. Rotating ones are twice L2's size before one is read
    again, and copies of memory run with them that move as many bytes."""
    size, runs_of = 4 * (64 * 32 + 32), {}

    def interleaved(runs, clock, seed, warm, check):
        runs_of.update(runs)
        warmed.append(warm)
        return {name: took(1.0, calls=len(calls)) for name, (_, calls) in runs.items()}

    warmed = []
    monkeypatch.setattr(timing, "interleaved", interleaved)
    monkeypatch.setattr(timing, "in_a_row", lambda runs, clock: calls)
    monkeypatch.setattr(Target, "live", lambda device: Target.named("h200"))
    gemv_does(right)
    compared = Comparison("smoke", 0, ["stand_in"], torch.device("cpu"))
    compared._clock = types.SimpleNamespace(l2_bytes=size)
    compared.run(replace(gemv(64, 32, a="pitched"), cache=cache))
    assert warmed == [warm] and all(r.ok for r in compared.records)
    for i, record in enumerate(compared.records):
        read = [call.args[0] for call in runs_of[i][1]]
        assert len(read) == record.calls == (20 if cache == "resident" else copies[i])
        assert len({a.data_ptr() for a in read}) == copies[i]
        assert all(torch.equal(a, read[0]) and a.stride() == read[0].stride() != (32, 1) for a in read)
        before = read[0].clone()
        runs_of[i][0]()
        assert all(torch.equal(a, read[0]) for a in read) and not torch.equal(read[0], before)
    moved = [call.args[0].nbytes + call.keywords["out"].nbytes for call in runs_of.get(comparison.COPY, (None, ()))[1]]
    needed = 4 * (64 * 32 + 32 + 64)
    assert moved == ([needed] * 3 if cache == "rotating" else [])
    for r in compared.records:
        assert r.copy_gbps == (pytest.approx(needed / 1e-3 / 1e9) if moved else None)


def test_a_second_contender_that_is_the_same_has_results_of_its_own(monkeypatch, triton_only):
    """A graph writes the tensor that was returned while it was captured, and none that a later capture returned."""
    made = []

    def convolution(image, weight, *, out):
        made.append((torch.conv2d(image, weight), image, weight))
        return made[-1][0]

    def interleaved(runs, clock, seed, warm, check):
        graphs = {}
        for name, (_, calls) in runs.items():
            calls[-1]()
            graphs[name] = made[-1]

        def again(result, image, weight, before, after):
            before()
            result.copy_(torch.conv2d(image, weight))
            return after()

        for name in runs:
            check(name, functools.partial(again, *graphs[name]))
        return {name: took(1.0) for name in runs}

    monkeypatch.setattr(timing, "interleaved", interleaved)
    monkeypatch.setattr(timing, "in_a_row", lambda runs, clock: dict.fromkeys(runs, 3))
    monkeypatch.setattr(Target, "live", lambda device: Target.named("h200"))
    monkeypatch.setitem(baselines.BASELINES, "conv2d", (("conv2d", convolution, False),))
    compared = Comparison("smoke", 0, ["none"], torch.device("cpu"))
    compared._clock = types.SimpleNamespace(l2_bytes=2**16)
    compared.run(conv2d((2, 3, 9, 8), (4, 3, 3, 3)))
    (row,) = compared.records
    assert (row.ok, row.message, row.again_ms) == (True, None, 1.0)


def entry(args, kwargs=None, op="gemv"):
    prepared = importlib.import_module(f"tritonkernels.{op}").prepare(*args, **(kwargs or {}))
    record = types.SimpleNamespace(precision=prepared.problem.precision)
    return types.SimpleNamespace(problem=prepared.problem, record=record, output=Output(prepared.result))


@pytest.mark.parametrize(
    "case, cache, floor_us",
    [
        (gemv(2048, 2048), "flushed", 2048 * 2049 * 4 / 4.8e6),  # what is written may stay in L2
        (gemv(2048, 2048), "resident", 2048 * 4097 / 67e6),
        (gemm(512, 512, 512), "flushed", 512 * 512 * 1025 / 67e6),
        (matmul(512, 512, 512, torch.float16, accumulate="fp16"), "flushed", 2 * 512 * 512 * 2 / 4.8e6),
        (conv2d((1, 64, 32, 32), (64, 64, 3, 3)), "flushed", 4 * 64 * (32 * 32 + 64 * 9) / 4.8e6),  # not its arithmetic
    ],
    ids=lambda value: getattr(value, "op", ""),
)
def test_a_time_below_the_roofline_is_impossible(case, cache, floor_us):
    entered, target = entry(*case.arguments(0, torch.device("cpu")), case.op), Target.named("h200")
    just_below = 1e-3 * floor_us * comparison.IMPOSSIBLE
    assert "an impossible time" in comparison.too_fast(entered, target, cache, 0.99 * just_below)
    assert comparison.too_fast(entered, target, cache, 1.02 * just_below) is None


def test_of_an_unknown_gpu_every_time_is_possible():
    target = replace(Target.named("h200"), dram_bandwidth=0.0, peaks={})
    assert comparison.too_fast(entry(*CASE.arguments(0, torch.device("cpu"))), target, "flushed", 0.0) is None
