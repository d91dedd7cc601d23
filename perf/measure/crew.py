"""Processes that share the work of a run: builders on the CPU's cores, and a process a GPU that measures what is built.

A process that measures has a GPU to itself. One that ends, or hangs, is replaced, and its task is answered with the reason.
"""

import collections
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from . import workers

HANG = 120.0  # seconds of a task, or of the start of a process
GLANCE = 1.0  # seconds between looks at the clock


@dataclass(frozen=True, eq=False)
class Job:
    """A task to measure, once its builds are done: {key, the same for all jobs that need it: what build gets}"""

    task: Any
    builds: dict[Hashable, Any]


class Crew:
    """build(task, tell) is the work of so many builders; measure(task, tell) returns an answer, on each of the GPUs, which are
    named as in CUDA_VISIBLE_DEVICES."""

    def __init__(self, build, builders, measure, gpus, start=workers.Worker, wait=workers.wait, now=time.monotonic):
        self._start, self._wait, self._now, self._build, self._measure = start, wait, now, build, measure
        self._builders = {start(build): None for _ in range(builders)}  # -> the key that it builds
        self._measurers = {self._on(gpu): (gpu, None, 0.0) for gpu in gpus}  # -> (GPU, job, since when)
        self._longest = 0.0

    def _on(self, gpu):
        return self._start(self._measure, {"CUDA_VISIBLE_DEVICES": gpu})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in (*self._builders, *self._measurers):
            worker.end()

    def run(self, jobs, seconds, answered: Callable[[Job, str, Any], None]):
        """Do the jobs for so long, the first ones first, and call answered(job, "done", answer) or (job, "died", why) of each.
        It returns whether the process can do no more. A job that would probably end too late is not begun."""
        self._until = self._now() + seconds
        self._waiting = {job: set(job.builds) for job in jobs}  # -> the keys that are missing, in the order of the jobs
        self._queue = collections.OrderedDict((key, task) for job in jobs for key, task in job.builds.items())
        if not self._builders:  # then the measuring processes build what they need
            self._built(*self._queue)
        while self._is_open() and (left := self._until - self._now()) > 0:
            self._give_builds()
            self._give_jobs()
            for worker in self._wait([*self._builders, *self._measurers], min(GLANCE, left)):
                what, value = worker.receive()
                if worker in self._builders:
                    self._from_builder(worker, what, value)
                else:
                    self._from_measurer(worker, what, value, answered)
            for worker, (_, job, since) in list(self._measurers.items()):
                if job and self._now() - since > HANG:
                    self._from_measurer(worker, "died", f"it did not end within {HANG:.0f} s", answered)

    def _is_open(self):
        """Whether something is under way or can be begun."""
        can_begin = self._waiting and self._until - self._now() > self._longest
        return can_begin or any(job for _, job, _ in self._measurers.values())

    def _give_builds(self):
        for worker, key in self._builders.items():
            if key is None and self._queue:
                self._builders[worker], task = self._queue.popitem(last=False)
                worker.give(task)

    def _give_jobs(self):
        for worker, (gpu, own, _) in self._measurers.items():
            job = next((job for job, missing in self._waiting.items() if not missing), None)
            if own is None and job and self._until - self._now() > self._longest:
                del self._waiting[job]
                self._measurers[worker] = gpu, job, self._now()
                worker.give(job.task)

    def _from_builder(self, worker, what, value):
        """A build that failed is done, too: it fails again where it is measured, and the row says why."""
        key, self._builders[worker] = self._builders[worker], None
        if key is None:
            raise RuntimeError(f"a process that builds cannot start: {value}")
        if what == "died":
            worker.end()
            del self._builders[worker]
            self._builders[self._start(self._build)] = None
        self._built(key)

    def _built(self, *keys):
        for missing in self._waiting.values():
            missing.difference_update(keys)

    def _from_measurer(self, worker, what, value, answered):
        gpu, job, since = self._measurers.pop(worker)
        if not job:
            raise RuntimeError(f"a process that measures cannot start: {value}")
        if what == "done":
            self._longest = max(self._longest, self._now() - since)
        if answered(job, what, value) or what == "died":
            worker.end()
            worker = self._on(gpu)
        self._measurers[worker] = gpu, None, 0.0
