"""The tuner on a simulated clock with noise: it finds the fastest right candidate, and an end at any point loses nothing."""

import contextlib
import itertools
import json
import os

import pytest
import torch

import cuda_reference
import tritonkernels
from tests import children
from tests.choice import processes
from tests.choice.stand_ins import SimulatedGpu, built, library, operands, right
from tests.harness import prepare
from tritonkernels import backend, native, numerics
from tritonkernels.choice import builders, builds, tuner
from tritonkernels.choice.bench import Contender, race
from tritonkernels.choice.table import UserTable
from tritonkernels.errors import ArgumentError, BackendError, ShapeError, TuningError, UnsupportedError
from tritonkernels.explanation import explain

US = 1e-6
PACKAGES = pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)


@pytest.fixture(autouse=True)
def no_builds(monkeypatch):
    monkeypatch.setattr(builds, "run", built)


def tune(served, gpu, budget=60.0, args=None, **options):
    return tuner.tune(served, "gemv", args or operands(), {}, budget, clock=gpu, **options)


def chosen(served, args=None):
    report = explain(served, "gemv", *(args or operands()))
    return report["design"], report["config"], report["chosen_by"]


def entries(file):
    return json.loads(file.read_text())["entries"]


@pytest.mark.parametrize("seed", range(5))
def test_the_fastest_is_found_within_the_budget(file, seed):
    gpu = SimulatedGpu(noise=0.1, seed=seed)
    times = {"slow": [900, 700], "fast": [150, 103, 100, 140], "default": [130, 120, 125]}
    served = library(gpu, **{name: [(t * US, right) for t in each] for name, each in times.items()})
    assert chosen(served) == ("default", {"number": 0}, "model")
    report = tune(served, gpu, budget=1.0)
    assert gpu.time < 1.0
    assert report["winner"]["design"] == "fast" and report["winner"]["config"]["number"] in (1, 2)
    assert report["default"]["design"] == "default" and report["speedup"] > 1.15
    assert (report["timed"], report["wrong"], report["failed"], report["left"]) == (9, 0, 0, 0)
    assert chosen(served) == ("fast", report["winner"]["config"], "tuned table")
    assert report["table"] == str(file) and entries(file)[0]["tried"] == []


@pytest.mark.parametrize("at", range(12))
def test_one_disturbed_run_loses_the_fastest_nothing(file, at):
    gpu, runs = SimulatedGpu(noise=0.0), itertools.count()

    def disturbed(a, x, out):
        right(a, x, out)
        if next(runs) == at:
            gpu.work(9000 * US)

    others = [((150 + i) * US, right) for i in range(12)]
    report = tune(library(gpu, other=[(100 * US, disturbed)], many=others, default=[(200 * US, right)]), gpu)
    assert next(runs) > at and report["winner"]["design"] == "other"


def test_the_budget_is_kept_and_the_next_call_goes_on(file):
    gpu = SimulatedGpu()
    served = library(gpu, last=[(100 * US, right)] * 4, default=[(0.01, right)] * 40)
    first = tune(served, gpu, budget=2.0)
    assert gpu.time < 2.2 and 0 < first["left"] < 40
    assert chosen(served)[2] == "model"
    calls = 1
    while (report := tune(served, gpu, budget=2.0))["left"]:
        calls += 1
    assert calls < 6 and chosen(served)[0] == "last" and report["timed"] == 44


def quick(a, x, out):
    out.copy_(a @ x + 1e-3)


def forgetful(a, x, out):
    """Leaves what was there, as a kernel that does not run."""


class OftenRight:
    """Right when checked first, wrong later."""

    def __init__(self):
        self.calls = 0

    def __call__(self, a, x, out):
        self.calls += 1
        right(a, x, out) if self.calls == 1 else quick(a, x, out)


@pytest.mark.parametrize("act", (quick, forgetful, OftenRight()), ids=lambda act: getattr(act, "__name__", "often right"))
def test_a_wrong_candidate_never_wins(file, act):
    gpu = SimulatedGpu()
    served = library(gpu, wrong=[(10 * US, act)], default=[(100 * US, right), (50 * US, right)])
    report = tune(served, gpu)
    assert report["winner"]["design"] == "default" and report["winner"]["config"] == {"number": 1}
    assert (report["timed"], report["wrong"]) == (2, 1)


def test_a_candidate_that_raises_is_skipped_and_named(file):
    def fail(a, x, out):
        raise ZeroDivisionError("in the kernel")

    gpu = SimulatedGpu()
    served = library(gpu, fast=[(50 * US, right)], raising=[(10 * US, fail)], default=[(100 * US, right)])
    report = tune(served, gpu)
    assert report["winner"]["design"] == "fast" and (report["timed"], report["failed"]) == (2, 1)
    assert report["faults"] == {"raising number=0": "ZeroDivisionError: in the kernel"}


def test_a_default_that_fails_is_replaced(file):
    def fail(a, x, out):
        raise ZeroDivisionError("in the kernel")

    gpu = SimulatedGpu()
    served = library(gpu, slow=[(100 * US, right)], default=[(10 * US, fail)])
    report = tune(served, gpu)
    assert report["default"].startswith("ZeroDivisionError") and report["speedup"] is None
    assert chosen(served)[0] == "slow"


def test_where_nothing_is_better_the_choice_is_left_to_the_rule(file):
    gpu = SimulatedGpu(noise=0.05)
    served = library(gpu, same=[(100 * US, right)] * 6, default=[(100 * US, right)])
    assert tune(served, gpu)["winner"]["design"] == "default"
    (entry,) = entries(file)
    assert (entry["design"], entry["config"], entry["tried"]) == (None, {}, []) and entry["ms"] == entry["default_ms"]
    assert chosen(served)[2] == "model"


def contender(*times):
    return Contender(None, None, list(times))


@pytest.mark.parametrize(
    "ours, theirs, ahead",
    [
        ((100, 100, 100), (102, 102, 102), True),  # by more than 1 %, without any noise
        ((100, 100, 100), (100.9, 100.9, 100.9), False),  # by less
        ((99, 100, 101) * 9, (101, 102, 103) * 9, True),  # by 2 %, and five standard errors
        ((97, 100, 103) * 3, (99, 102, 105) * 3, False),  # by 2 %, which is one
        ((100.0, 100.1) * 9, (100.5, 100.6) * 9, False),  # by 0.5 %, which is certain
        ((102, 102, 102), (100, 100, 100), False),
    ],
)
def test_the_default_is_left_for_what_is_ahead_by_more_than_the_noise_and_by_a_hundredth(ours, theirs, ahead):
    assert contender(*ours).beats(contender(*theirs)) == ahead


def test_a_final_goes_on_until_every_median_is_certain():
    """Two runs, one without noise."""
    noisy, steady = contender(), contender()
    rounds = itertools.count()

    def one_round(contenders):
        noisy.times.append(100 + 5 * (next(rounds) % 2))
        steady.times.append(100.0)

    race([steady, noisy], one_round, SimulatedGpu(), until=60.0)
    certain = len(noisy.times)
    assert noisy.standard_error <= 0.005 * noisy.ms and 10 < certain < 200
    del noisy.times[-1]
    assert noisy.standard_error > 0.005 * noisy.ms


class Killed(BaseException):
    """As a signal or a fault of the GPU ends a process: nothing may handle it."""


def kill_after(gpu, steps):
    """At the given kernel or flush."""
    left, work = iter(range(steps)), gpu.work

    def step(seconds):
        if next(left, None) is None:
            raise Killed
        work(seconds)

    gpu.work = step


def test_an_end_at_any_step_loses_nothing(file):
    """What was tried is not tried again, but for the finalists, and the winner is the same."""
    checked = []

    def noting(name):
        def act(a, x, out):
            checked.extend([name] * bool(torch.isnan(out).all()))
            right(a, x, out)

        return act

    def make(gpu):
        slow, fast, default = ((t * US, noting(name)) for name, t in (("slow", 200), ("fast", 50), ("default", 100)))
        return library(gpu, last=[slow, fast], default=[default])

    ends = []
    for steps in range(0, 300, 7):
        gpu = SimulatedGpu()
        kill_after(gpu, steps)
        try:
            tune(make(gpu), gpu)
        except Killed:
            tried = [config for *config, outcome in entries(file)[0]["tried"] if isinstance(outcome, float)]
            ends.append(len(tried))
            checked.clear()
            gpu = SimulatedGpu()
            report = tune(make(gpu), gpu)
            assert (report["timed"], report["left"]) == (3, 0)
            assert ("slow" in checked) == (["last", {"number": 0}] not in tried)
        assert chosen(make(gpu)) == ("last", {"number": 1}, "tuned table")
        file.unlink()
    assert {0, 1, 2, 3} <= set(ends) and len(ends) < 43, "some end in each trial and in the final, and some not at all"


def test_a_candidate_that_ends_the_process_comes_last_and_not_a_third_time(file):
    def kill(a, x, out):
        order.append("deadly")
        raise Killed

    def note(a, x, out):
        order.append("fast")
        right(a, x, out)

    for expected in (["deadly"], ["fast", "deadly"], ["fast"]):
        order = []
        gpu = SimulatedGpu()
        served = library(gpu, fast=[(50 * US, note)], deadly=[(10 * US, kill)], default=[(100 * US, right)])
        with contextlib.suppress(Killed):
            report = tune(served, gpu)
        assert list(dict.fromkeys(order)) == expected
    assert report["winner"]["design"] == "fast" and list(report["faults"].values()) == [tuner.TWICE]


def test_a_lost_gpu_is_an_error_that_keeps_what_was_found(file):
    def lose(a, x, out):
        gpu.synchronize = lost
        raise RuntimeError("an illegal memory access")

    def lost():
        raise RuntimeError("an illegal memory access")

    gpu = SimulatedGpu()
    served = library(gpu, fast=[(50 * US, right)], deadly=[(10 * US, lose)], default=[(100 * US, right)])
    with pytest.raises(TuningError, match=r"deadly number=0 has destroyed the CUDA context.*new process"):
        tune(served, gpu)
    del gpu.synchronize
    report = tune(served, gpu)
    assert report["winner"]["design"] == "fast" and report["failed"] == 1


def test_a_budget_below_one_build(file, monkeypatch):
    asked = []
    monkeypatch.setattr(builds, "run", lambda *job: asked.append(job[-2:]) or {})
    gpu = SimulatedGpu()
    served = library(gpu, default=[(100 * US, right)])
    with pytest.raises(ArgumentError, match=r"budget: got 2 s; allowed: more than the first right kernel.*, such as 4\."):
        tune(served, gpu, budget=2.0)
    ((soon, late),) = asked
    assert soon <= 1.0 and late <= 1.8 and not file.exists()


def test_a_build_longer_than_the_budget_is_foreseen(file, monkeypatch):
    gpu = SimulatedGpu()
    served = library(gpu, default=[(100 * US, right)] * 3)
    left = iter((30.0, 40.0, 50.0, 30.0, 0.0))
    served.build_seconds = lambda launch: next(left)
    monkeypatch.setattr(builders, "cores", lambda: 2)
    asked = []
    monkeypatch.setattr(builds, "run", lambda *job: asked.append(job) or built(*job))
    with pytest.raises(ArgumentError, match=r"budget: got 20 s; allowed: at least 34 s. No kernel .* expected to take 30 s"):
        tune(served, gpu, budget=20.0)
    assert not asked and next(left) == 50.0 and not file.exists()
    assert tune(served, gpu, budget=20.0)["timed"] == 3, "one of the two is built"


def test_what_is_not_built_is_left_and_a_failed_build_is_not_repeated(file, monkeypatch):
    asked = []

    def run(library, target, call, candidates, soon, late):
        asked.append([c.design.name for c in candidates])
        failures = {"default": None, "fast": "BuildError: no compiler"} | dict.fromkeys(["late"] * (len(asked) > 1))
        return {c: failures[c.design.name] for c in candidates if c.design.name in failures}

    monkeypatch.setattr(builds, "run", run)
    gpu = SimulatedGpu()
    served = library(gpu, late=[(10 * US, right)], fast=[(50 * US, right)], default=[(100 * US, right)])
    report = tune(served, gpu)
    assert report["winner"]["design"] == "default" and report["faults"] == {"fast number=0": "BuildError: no compiler"}
    assert (report["timed"], report["left"]) == (1, 1)
    assert tune(served, gpu)["winner"]["design"] == "late"
    assert asked == [["default", "fast", "late"], ["default", "late"]]


def test_nothing_is_timed_before_all_builders_have_ended(file, tmp_path, monkeypatch):
    """One of them hangs, and does not end itself."""

    def run(library, target, call, candidates, soon, late):
        tasks = [(tmp_path, "hang" if c.design.name == "hanging" else "wait_for_hang") for c in candidates]
        return {candidates[number]: why for number, why in builders.run(processes.prepare, tasks, soon, late).items()}

    def check(a, x, out):
        assert len(processes.noted(tmp_path)) == 4 and processes.left(tmp_path) == []
        right(a, x, out)

    monkeypatch.setattr(builds, "run", run)
    monkeypatch.setattr(builders, "cores", lambda: 2)
    monkeypatch.setattr(tuner, "BUILDS", 0)  # at the first success
    gpu = SimulatedGpu()
    served = library(gpu, default=[(100 * US, check)], hanging=[(1 * US, check)])
    report = tune(served, gpu)
    assert (report["winner"]["design"], report["left"]) == ("default", 1) and "faults" not in report


def test_if_nothing_is_right_that_is_an_error(file):
    gpu = SimulatedGpu()
    served = library(gpu, wrong=[(1e-6, quick)])
    with pytest.raises(TuningError, match=r"no candidate computes this right: .*wrong number=0.*above the bound"):
        tune(served, gpu)


def test_the_caller_s_tensors_are_left_as_they_are(file):
    gpu = SimulatedGpu()
    served = library(gpu, default=[(100 * US, right)])
    a, x, out = torch.randn(5, 6, requires_grad=True), torch.randn(6), torch.full((5,), 7.0)
    before = a.detach().clone()
    tuner.tune(served, "gemv", (a, x), {"out": out}, 60.0, clock=gpu)
    assert torch.equal(a, before) and bool((out == 7).all())


def test_repeated_calls_take_the_winner(file):
    """A plan of before would repeat the choice of before."""
    gpu, calls = SimulatedGpu(), []

    def noting(name):
        def act(a, x, out):
            calls.append(name)
            right(a, x, out)

        return act

    served = library(gpu, fast=[(50 * US, noting("fast"))], default=[(100 * US, noting("default"))])
    plans, served.native = served.plans, native.load().Repeats()
    tune(served, gpu)
    assert served.plans is not plans and served.native.cleared == 1


@pytest.mark.gpu
@PACKAGES
def test_on_a_gpu(file, fresh, package):
    a, b = torch.randn(300, 200, device="cuda"), torch.randn(200, 400, device="cuda")
    report = package.tune("gemm", a, b, budget=20.0)
    assert report["timed"] >= 1 and "faults" not in report, report
    assert package.explain("gemm", a, b)["design"] == report["winner"]["design"]
    assert numerics.judge(prepare("gemm", a, b).problem, package.gemm(a, b), a, b).ok


@PACKAGES
def test_without_a_gpu_it_is_refused(file, package):
    if backend.device_type() != "cpu":
        pytest.skip("there is one")
    with pytest.raises(BackendError, match=r"tune needs a GPU: times of the (interpreter|simt) say nothing"):
        package.tune("gemv", *operands())
    assert not file.exists()


@pytest.mark.parametrize("budget", (0, -1.0, float("inf"), float("nan"), "60", True, None))
def test_a_budget_that_is_no_number_of_seconds(file, budget):
    with pytest.raises(ArgumentError, match=r"budget: got .*a positive number of seconds"):
        tritonkernels.tune("gemv", *operands(), budget=budget)


def test_errors_are_those_of_the_call(file, monkeypatch):
    gpu = SimulatedGpu()
    served = library(gpu, default=[(100 * US, right)])
    with pytest.raises(ArgumentError, match="op: got 'gem'"):
        tritonkernels.tune("gem", *operands())
    with pytest.raises(ArgumentError, match="x"):
        tune(served, gpu, args=(torch.randn(4, 5), torch.randn(6)))
    with pytest.raises(ShapeError, match="no elements"):
        tune(served, gpu, args=(torch.randn(0, 5), torch.randn(5)))
    served.misses = lambda target: "there is no compiler for it"
    with pytest.raises(UnsupportedError, match="no compiler for it"):
        tune(served, gpu)
    monkeypatch.setenv("TRITONKERNELS_TUNING", "off")
    served.misses, served.tuned = (lambda target: None), UserTable()
    with pytest.raises(TuningError, match="TRITONKERNELS_TUNING is off"):
        tune(served, gpu)


def test_what_is_built_ahead_is_what_is_launched(tmp_path):
    """Else the tuner would compile each candidate a second time, within the budget and one after the other."""
    run = children.run("-m", "tests.choice.fake_build", env=os.environ | {"TRITON_CACHE_DIR": str(tmp_path)})
    assert run.returncode == 0, run.stderr
    compared, again, found, others = json.loads(run.stdout)
    assert compared > 100 and not again
    assert found and not others
