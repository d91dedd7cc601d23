"""A crew on a simulated clock: builds come before what needs them, GPUs share the jobs, time is kept, faults are answered."""

import collections
import os

import pytest
from stand_ins import SimulatedTime

from perf.measure import workers
from perf.measure.crew import HANG, Crew, Job

BUILD_S, MEASURE_S = 4.0, 1.0


class Simulated(SimulatedTime):
    """Workers that are not there. Tasks are names; `dies` and `hangs` are some of them."""

    def __init__(self, dies=(), hangs=()):
        super().__init__()
        self.dies, self.hangs = dies, hangs

    def start(self, work, environment=None):
        worker = FakeWorker(self, work, environment)
        self.alive.add(worker)
        return worker

    def crew(self, builders=2, gpus=("0",)):
        return Crew("build", builders, "measure", gpus, self.start, self.wait, lambda: self.time)

    def run(self, jobs, seconds=1e6, lost=(), **options):
        answers = []
        with self.crew(**options) as crew:
            crew.run(jobs, seconds, lambda job, *answer: answers.append((job.task, *answer)) or job.task in lost)
        assert not self.alive, "all are ended"
        return answers


class FakeWorker:
    def __init__(self, all_of_them, work, environment):
        self.all, self.work, self.environment, self.events = all_of_them, work, environment, collections.deque()

    def give(self, task):
        assert not self.events
        self.all.log.append((self.work, task, self.environment, self.all.time))
        what = ("died", "gone") if task in self.all.dies else ("done", task.upper())
        if task not in self.all.hangs:
            self.events.append((self.all.time + (BUILD_S if self.work == "build" else MEASURE_S), *what))

    def receive(self):
        return self.events.popleft()[1:]

    def end(self):
        self.all.alive.remove(self)


def jobs(*names, **builds):
    return [Job(name, {key: f"build {key}" for key in builds.get(name, (name,))}) for name in names]


def starts(simulated, work):
    return {task: time for own, task, _, time in simulated.log if own == work}


def test_a_job_waits_for_its_builds_and_shares_them():
    simulated = Simulated()
    answers = simulated.run(jobs("a", "b", "c", a=("x", "y"), b=("y",), c=("z",)))
    assert answers == [("a", "done", "A"), ("b", "done", "B"), ("c", "done", "C")]
    assert starts(simulated, "build") == {"build x": 0.0, "build y": 0.0, "build z": BUILD_S}
    assert starts(simulated, "measure") == {"a": BUILD_S, "b": BUILD_S + 1, "c": 2 * BUILD_S}


def test_what_is_built_is_measured_although_an_earlier_job_is_not():
    simulated = Simulated()
    assert [task for task, *_ in simulated.run(jobs("a", "b", a=("x", "y", "z"), b=("x",)))] == ["b", "a"]


def test_gpus_share_the_jobs():
    simulated = Simulated()
    simulated.run(jobs(*"abcd"), builders=4, gpus=("0", "3"))
    by_gpu = collections.Counter(
        environment["CUDA_VISIBLE_DEVICES"] for work, _, environment, _ in simulated.log if environment
    )
    assert by_gpu == {"0": 2, "3": 2} and simulated.time == BUILD_S + 2 * MEASURE_S


def test_without_builders_nothing_is_built_before():
    simulated = Simulated()
    simulated.run(jobs("a", "b"), builders=0)
    assert starts(simulated, "build") == {} and starts(simulated, "measure") == {"a": 0.0, "b": 1.0}


def test_a_job_that_would_end_too_late_is_not_begun():
    simulated = Simulated()
    assert [task for task, *_ in simulated.run(jobs(*"abcdef"), seconds=3.5, builders=0)] == ["a", "b", "c"]
    assert simulated.time == 3.0


def test_time_that_builds_take_counts():
    simulated = Simulated()
    assert simulated.run(jobs("a"), seconds=3.0) == [] and simulated.time == 3.0


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_a_fault_is_answered_and_the_process_replaced(how):
    simulated = Simulated(**{how: ("b",)})
    answers = simulated.run(jobs(*"abc"), builders=0)
    why = "gone" if how == "dies" else f"it did not end within {HANG:.0f} s"
    assert answers == [("a", "done", "A"), ("b", "died", why), ("c", "done", "C")]


def test_a_process_that_can_do_no_more_is_replaced():
    simulated = Simulated()
    simulated.run(jobs(*"abc"), builders=0, lost=("b",))
    assert [task for _, task, *_ in simulated.log] == ["a", "b", "c"]
    simulated = Simulated()
    with simulated.crew(builders=0) as crew:
        (first,) = simulated.alive
        crew.run(jobs("a", "b"), 1e6, lambda job, *answer: job.task == "a")
        assert first not in simulated.alive and len(simulated.alive) == 1


def test_a_build_that_ends_its_process_is_left_to_the_one_that_measures():
    simulated = Simulated(dies=("build a",))
    assert simulated.run(jobs("a", "b"), builders=1) == [("a", "done", "A"), ("b", "done", "B")]


def test_a_process_that_cannot_start_is_no_endless_loop():
    simulated = Simulated()
    with simulated.crew() as crew, pytest.raises(RuntimeError, match="cannot start: gone"):
        next(worker for worker in simulated.alive if worker.work == "measure").events.append((0.0, "died", "gone"))
        crew.run(jobs("a"), 1e6, lambda *answer: None)


def visible(task, tell):
    return os.environ["CUDA_VISIBLE_DEVICES"], task


def test_a_real_process_sees_its_gpu_only(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    answers = []
    with Crew(visible, 0, visible, ("2",), start=workers.Worker) as crew:
        crew.run([Job("a", {})], 60.0, lambda job, *answer: answers.append(answer))
    assert answers == [("done", ("2", "a"))] and os.environ["CUDA_VISIBLE_DEVICES"] == "7"
