"""The timing loop under a simulated GPU: a host and a device clock, the device a queue behind the host."""

import functools
import random
import statistics

import pytest

from perf.measure import timing
from tests.exploits.simulated import SimulatedEvent


class SimulatedGpu:
    """Work takes `gpu` seconds in a queue and `host` seconds to enqueue; events mark the queue's end."""

    def __init__(self, flush_s=25e-6, speed=lambda: 1.0):
        self.host, self.device, self.log = 0.0, 0.0, []
        self._flush_s, self._speed, self._captured = flush_s, speed, {}

    def now(self):
        return self.host

    def enqueue(self, name, gpu, host):
        self.log.append(name)
        self.host += host
        self.device = max(self.device, self.host) + gpu * self._speed()

    def call(self, name, gpu, host=10e-6):
        def run():
            self.enqueue(name, gpu, host)

        self._captured[run] = lambda: self.enqueue(name, gpu, 1e-6)
        return (lambda: self.log.append(f"reset {name}")), run

    def replay(self, calls):
        listed = calls.args[0] if isinstance(calls, functools.partial) else [calls]
        if all(call in self._captured for call in listed):
            return lambda: [self._captured[call]() for call in listed]
        return None

    def flush(self):
        self.enqueue("flush", self._flush_s, 2e-6)

    def event(self):
        return SimulatedEvent(self, max(self.device, self.host))

    def synchronize(self):
        self.host = max(self.host, self.device)


def measure(gpu, seed=0, warm=False, times=1, **runs):
    return timing.interleaved({n: (reset, [call] * times) for n, (reset, call) in runs.items()}, gpu, seed, warm)


def rounds_of(gpu):
    """The names of the timed runs, in order; a timed run is the one right after a flush."""
    return [name for before, name in zip(gpu.log, gpu.log[1:]) if before == "flush" and name not in ("flush",)]


@pytest.mark.parametrize(
    "late, kept, left_out, exposed",
    [(0, 12, 0, 0.0), (2, 10, 2, 0.0), (3, 12, 0, 0.25), (12, 12, 0, 1.0)],
)
def test_rounds_with_host_time_are_left_out_unless_too_few_remain(late, kept, left_out, exposed):
    samples = [(100.0 if i < late else 1.0 + i, i < late) for i in range(12)]
    result = timing.summary(samples, 0.1, True, 7)
    expected = [ms for ms, is_late in samples if not (left_out and is_late)]
    assert (result.rounds, result.left_out, result.exposed) == (kept, left_out, exposed)
    assert (result.median_ms, result.call_ms, result.replayed, result.calls) == (statistics.median(expected), 0.1, True, 7)


def test_statistics():
    result = timing.summary([(ms, False) for ms in (5.0, 1.0, 2.0, 4.0, 3.0, 100.0)], 0.1, True, 1)
    assert result == timing.Timing(3.5, 2.0, 5.0, 6, 0, 0.0, 0.1, True, 1)


@pytest.mark.parametrize(
    "microseconds, calls",
    [
        ({"a": 30, "b": 21}, {"a": 1, "b": 1}),
        ({"a": 30, "b": 10}, {"a": 17, "b": 50}),  # the fastest is short, so all are timed in a row
        ({"a": 600, "b": 10}, {"a": 1, "b": 50}),
        ({"a": 0.001}, {"a": 500}),
    ],
)
def test_short_calls_are_timed_in_a_row(microseconds, calls):
    gpu = SimulatedGpu()
    assert timing.in_a_row({name: gpu.call(name, 1e-6 * us)[1] for name, us in microseconds.items()}, gpu) == calls


def test_times_are_the_devices():
    gpu = SimulatedGpu()
    result = measure(gpu, fast=gpu.call("fast", 5e-6), slow=gpu.call("slow", 80e-6))
    assert result["fast"].median_ms == pytest.approx(5e-3)
    assert result["slow"].median_ms == pytest.approx(80e-3)


@pytest.mark.parametrize("replayed", [True, False])
def test_a_slow_host_is_hidden_and_timed_separately(replayed):
    gpu = SimulatedGpu()
    reset, call = gpu.call("python", 5e-6, host=900e-6)
    result = measure(gpu, python=(reset, call if replayed else lambda: call()))["python"]
    assert result.median_ms == pytest.approx(5e-3)
    assert result.call_ms == pytest.approx(0.9)
    assert (result.exposed, result.replayed) == (0.0, replayed)


def test_a_host_that_cannot_be_hidden_is_reported():
    gpu = SimulatedGpu()

    def waits():
        gpu.synchronize()  # a design that waits for the GPU before it launches
        gpu.enqueue("waits", 5e-6, 50e-6)

    result = measure(gpu, waits=(lambda: None, waits))["waits"]
    assert (result.exposed, result.replayed) == (1.0, False)


def test_many_calls_share_a_run():
    gpu = SimulatedGpu()
    result = measure(gpu, times=7, a=gpu.call("a", 5e-6), b=gpu.call("b", 9e-6))
    assert [result[name].median_ms for name in "ab"] == pytest.approx([5e-3, 9e-3])


@pytest.mark.parametrize("warm", [False, True])
def test_a_warm_run_finds_its_operands_in_the_cache(warm):
    gpu = SimulatedGpu()
    reset, call = gpu.call("a", 5e-6)
    gpu._captured[call] = lambda: gpu.enqueue("a", 5e-6 if gpu.log[-1] == "a" else 50e-6, 1e-6)
    assert measure(gpu, warm=warm, a=(reset, call))["a"].median_ms == pytest.approx(5e-3 if warm else 50e-3)


def test_every_run_follows_a_flush_and_a_reset():
    gpu = SimulatedGpu()
    measure(gpu, a=gpu.call("a", 5e-6), b=gpu.call("b", 5e-6))
    resets = [i for i, name in enumerate(gpu.log) if name.startswith("reset")]
    assert len(resets) == 2 * timing.ROUNDS[1]
    for start in resets:
        name = gpu.log[start].removeprefix("reset ")
        flushes = gpu.log.index(name, start) - start - 1
        assert flushes > 0
        assert gpu.log[start + 1 : start + 1 + flushes] == ["flush"] * flushes


def test_every_round_has_every_contender_in_an_order_of_its_own():
    gpu = SimulatedGpu()
    measure(gpu, seed=5, **{name: gpu.call(name, 5e-6) for name in "abc"})
    runs = [name for name in rounds_of(gpu) if name in "abc"]
    rounds = [tuple(runs[i : i + 3]) for i in range(0, len(runs), 3)]
    assert all(sorted(r) == ["a", "b", "c"] for r in rounds)
    assert len(set(rounds)) == 6


def test_the_order_follows_the_seed():
    def order(seed):
        gpu = SimulatedGpu()
        measure(gpu, seed=seed, **{name: gpu.call(name, 5e-6) for name in "abc"})
        return rounds_of(gpu)

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_a_drifting_clock_hits_all_alike():
    drift = iter(1 + i / 2000 for i in range(10**6))
    gpu = SimulatedGpu(speed=lambda: next(drift))
    result = measure(gpu, a=gpu.call("a", 50e-6), b=gpu.call("b", 50e-6))
    assert result["a"].median_ms == pytest.approx(result["b"].median_ms, rel=0.02)


def test_outliers_do_not_move_the_median():
    noise = random.Random(0)
    gpu = SimulatedGpu(speed=lambda: 50.0 if noise.random() < 0.1 else 1.0)
    assert measure(gpu, a=gpu.call("a", 50e-6))["a"].median_ms == pytest.approx(50e-3)


@pytest.mark.parametrize(("seconds", "rounds"), [(1e-6, timing.ROUNDS[1]), (0.004, 41), (0.016, timing.ROUNDS[0])])
def test_rounds_fill_the_budget(seconds, rounds):
    gpu = SimulatedGpu()
    timings = measure(gpu, **{name: gpu.call(name, seconds) for name in "abc"})
    assert [timing.rounds for timing in timings.values()] == [pytest.approx(rounds, abs=1)] * 3


@pytest.mark.parametrize(("seconds", "rounds"), [(0.03, 16), (0.2, timing.KEPT)])
def test_a_slow_contender_sits_out(seconds, rounds):
    gpu = SimulatedGpu()
    timings = measure(gpu, slow=gpu.call("slow", seconds), fast=gpu.call("fast", 1e-3))
    assert timings["slow"].rounds == pytest.approx(rounds, abs=1) and timings["fast"].rounds >= timing.ROUNDS[0]
    assert timings["slow"].median_ms == pytest.approx(1e3 * seconds)


@pytest.mark.parametrize(("seconds", "calls"), [(1e-4, 50), (2e-3, 25), (0.5, 5)])
def test_host_time_is_of_fewer_calls_where_they_are_slow(seconds, calls):
    gpu = SimulatedGpu()
    _, call = gpu.call("a", seconds)
    assert timing._host_ms(call, gpu) == pytest.approx(0.01)
    assert gpu.log.count("a") == pytest.approx(timing.WARM_UPS + calls, abs=1)


def test_the_check_comes_right_behind_a_timed_run():
    gpu, seen = SimulatedGpu(), []

    def check(name, again):
        del gpu.log[:]
        seen.append(
            again(lambda: gpu.log.append("before"), lambda: (gpu.log.append("after"), gpu.log.copy(), gpu.host, gpu.device))
        )

    reset, call = gpu.call("a", 5e-6)
    timing.interleaved({"a": (reset, [call])}, gpu, 0, check=check)
    ((_, log, host, device),) = seen
    assert [name for name in log if name != "flush"] == ["before", "a", "after"] and log[0] == "flush"
    assert host < device, "nothing has waited for the GPU"
    assert gpu.host >= device, "but then something does"
