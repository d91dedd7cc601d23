"""The order of a sweep on a simulated clock: builds and trials, the time limit, faults; and once with real processes."""

import collections
import os
import types

import pytest
from stand_ins import SimulatedTime

from perf.measure import schedule, trial, workers
from tests.harness import thorough

BUILD_S, TRIAL_S = {"tritonkernels": 1.0, "cuda_reference": 10.0}, 0.5


class Crew(SimulatedTime):
    """Workers that are not there: a build takes BUILD_S, a trial TRIAL_S; `dies` and `hangs` are names of contenders."""

    def __init__(self, dies=(), hangs=(), fails=(), shared=False):
        super().__init__()
        self.dies, self.hangs, self.fails = dies, hangs, fails

    def now(self):
        return self.time

    def start(self, work):
        worker = FakeWorker(self, work)
        self.alive.add(worker)
        return worker


class FakeWorker:
    def __init__(self, crew, work):
        self.crew, self.work, self.events = crew, work, collections.deque()

    def give(self, task):
        assert not self.events
        crew = self.crew
        if self.work is trial.build:
            _, package, contender = task
            crew.log.append(("build", package, contender[0], crew.time))
            fault = contender[0] in crew.dies and "builder" in crew.dies
            failed = "it does not compile" if contender[0] in crew.fails else None
            self.events.append((crew.time + BUILD_S[package], *(("died", "gone") if fault else ("done", failed))))
            return
        names = [name for name, _ in task.contenders]
        crew.log.append(("trial", task.shape.case, names, crew.time))
        for i, name in enumerate(names):
            self.events.append((crew.time, "news", i))
            if name in crew.hangs:
                return
            if name in crew.dies:
                self.events.append((crew.time + TRIAL_S, "died", "gone"))
                return
        found = {"torch": ["matmul", 1.0], "times": [[n, {}, 1.0, 0.01] for n in names], "wrong": [], "failed": []}
        self.events += [(crew.time, "news", None), (crew.time + TRIAL_S, "done", found)]

    def receive(self):
        return self.events.popleft()[1:]

    def end(self):
        self.crew.alive.remove(self)


def shape(name):
    problem = types.SimpleNamespace(op="gemm", describe=lambda: {"name": name})
    return types.SimpleNamespace(case=name, family="family", problem=problem)


def job(name, *designs, package="tritonkernels", keys=None):
    planned = trial.Trial(shape(name), package, tuple((design, {}) for design in designs))
    return schedule.Job(planned, keys or tuple((name, package, i) for i in range(len(designs))))


def run(jobs, crew, builders=4, seconds=100.0):
    rows = []
    done = schedule.Schedule(jobs, builders, seconds, rows.append, crew.start, crew.wait, crew.now)
    done.run()
    assert not crew.alive
    return rows


def timed(row):
    return [name for name, *_ in row["times"]]


def test_trials_come_in_their_order_while_others_are_built():
    crew = Crew()
    rows = run([job(f"{i}", "a", "b", "c", "d") for i in range(10)], crew)
    assert [row["problem"]["name"] for row in rows] == [f"{i}" for i in range(10)]
    assert all(timed(row) == ["a", "b", "c", "d"] and row["left_out"] == 0 for row in rows)
    first_trial = next(entry[-1] for entry in crew.log if entry[0] == "trial")
    assert first_trial == 1.0 and crew.time == 10.5


def test_slow_builds_of_one_package_do_not_hold_up_the_other():
    jobs = [job(f"{i}", "a", "b", package=package) for i in range(10) for package in BUILD_S]
    crew = Crew()
    rows = run(jobs, crew, builders=4, seconds=1000)
    assert len(rows) == 20 and next(entry[-1] for entry in crew.log if entry[0] == "trial") == 1.0
    assert [row["package"] for row in rows[:9]] == ["tritonkernels"] * 9
    first = [entry[1] for entry in crew.log if entry[0] == "build" and entry[-1] == 0]
    assert first == ["tritonkernels", "cuda_reference"] * 2


def test_a_build_that_several_share_is_done_once():
    crew = Crew()
    jobs = [job(f"{i}", "a", "b", package="cuda_reference", keys=("module", "module")) for i in range(3)]
    rows = run(jobs, crew)
    assert [entry[0] for entry in crew.log].count("build") == 1 and [timed(row) for row in rows] == [["a", "b"]] * 3


def test_it_ends_in_time_and_leaves_out_what_is_not_built():
    crew = Crew()
    rows = run([job(f"{i}", *"abcd", package="cuda_reference") for i in range(100)], crew, builders=3, seconds=100)
    assert crew.time <= 100
    whole = [row for row in rows if row["left_out"] == 0]
    partial = [row for row in rows if row["left_out"]]
    assert len(whole) == 6 and all(len(timed(row)) + row["left_out"] == 4 for row in rows)
    assert [timed(row) for row in partial] in ([], [["a", "b"]], [["a", "b", "c"]])


def test_at_the_end_a_trial_that_lacks_one_kernel_is_measured_without_it():
    crew = Crew()
    jobs = [job("0", "a", "b", "c", keys=(1, 2, 3), package="cuda_reference")]
    rows = run(jobs, crew, builders=1, seconds=30)
    assert [(timed(row), row["left_out"]) for row in rows] == [(["a", "b"], 1)] and crew.time <= 30


def test_nothing_that_was_measured_is_lost_at_the_limit():
    crew = Crew()
    rows = run([job(f"{i}", "a") for i in range(200)], crew, builders=8, seconds=10)
    assert 16 <= len(rows) <= 20 and crew.time <= 10


@pytest.mark.parametrize("crew", (Crew(dies=("b",)), Crew(hangs=("b",))), ids=("dies", "hangs"))
def test_a_contender_that_faults_is_recorded_and_the_others_stay(crew):
    first, second = run([job("0", "a", "b", "c"), job("1", "a", "c")], crew)
    assert timed(first) == ["a", "c"] and timed(second) == ["a", "c"]
    assert first["failed"][0][0] == "b" and first["failed"][0][2].startswith("a fault: ") and "fault" not in first
    assert (first["faults"], second["faults"]) == (1, 0)


def test_a_trial_of_many_faults_is_given_up():
    first, second = run([job("0", *"abcdef"), job("1", "f")], Crew(dies="abcde"))
    assert first["fault"] == "gone" and [name for name, *_ in first["failed"]] == ["a", "b", "c"] and timed(second) == ["f"]


def test_a_build_that_fails_or_dies_is_recorded():
    (row,) = run([job("0", "a", "b")], Crew(fails=("b",)))
    assert timed(row) == ["a"] and row["failed"] == [["b", {}, "it does not compile"]]
    (row,) = run([job("0", "a", "b")], Crew(dies=("b", "builder")))
    assert timed(row) == ["a"] and row["failed"] == [["b", {}, "building it: gone"]]


def work(task, tell):
    tell(task)
    if task == "crash":
        os._exit(7)
    return f"{task} done"


@thorough
def test_a_real_process_that_crashes_says_so():
    steady, crashing = workers.Worker(work), workers.Worker(work)
    try:
        steady.give("one")
        crashing.give("crash")
        heard = {steady: [], crashing: []}
        while len(heard[steady]) + len(heard[crashing]) < 4:
            for worker in workers.wait([w for w in heard if len(heard[w]) < 2], 60):
                heard[worker].append(worker.receive())
        assert heard[steady] == [("news", "one"), ("done", "one done")]
        assert heard[crashing] == [("news", "crash"), ("died", "its process ended with status 7")]
        assert workers.wait([steady], 0) == []
    finally:
        steady.end(), crashing.end()
