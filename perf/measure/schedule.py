"""The order of a sweep: kernels are built on many cores while the GPU measures the trials whose kernels are ready.

Half of the builders prefer either package, since a CUDA module takes ten times as long as a Triton kernel. The last part of the
time belongs to trials of which some kernels are missing: those are left out. A contender at which the measuring process ends,
or hangs, is recorded as failed, and the trial is repeated without it.
"""

import collections
import heapq
import time
from dataclasses import dataclass, field, replace

from . import trial, workers

BUILDS = 0.85  # of the time; then what is missing is left out
ENOUGH = 0.5  # of a trial's contenders must be built then, or it is not measured
HANG = 30.0  # seconds of a contender until its first sample
SILENCE = 120.0  # seconds of anything else, such as the start of the process
FAULTS = 3  # of a trial, after which it is given up
GLANCE = 1.0  # seconds between looks at the clock


@dataclass(eq=False)
class Job:
    """A trial, with a key for each contender's build (the same for all that the same build makes)."""

    trial: trial.Trial
    keys: tuple
    unbuilt: set = field(init=False)
    failed: dict = field(default_factory=dict)  # index of the contender -> why it was not measured
    faults: int = 0

    def __post_init__(self):
        self.unbuilt = set(self.keys)

    @property
    def left(self):
        """Indices of the contenders that can be measured."""
        return [i for i, key in enumerate(self.keys) if key not in self.unbuilt and i not in self.failed]


class Schedule:
    """run() does the jobs in their order, as far as `seconds` last, and calls record(row) for each."""

    def __init__(self, jobs, builders, seconds, record, start=workers.Worker, wait=workers.wait, now=time.monotonic):
        self._jobs, self._record, self._start, self._wait, self._now = jobs, record, start, wait, now
        self._begun, self._seconds = now(), seconds
        self._order = {job: i for i, job in enumerate(jobs)}
        self._wanted, self._builds = collections.defaultdict(list), {}
        for job in jobs:
            queue = self._builds.setdefault(job.trial.package, collections.deque())
            for key, contender in dict(zip(job.keys, job.trial.contenders)).items():
                if key not in self._wanted:
                    queue.append((key, (job.trial.shape.case, job.trial.package, contender)))
                self._wanted[key].append(job)
        self._ready = []  # a heap of (place in the order, job)
        self._builders = {start(trial.build): None for _ in range(min(builders, len(self._wanted)))}  # -> key
        self._prefers = {builder: i % len(self._builds) for i, builder in enumerate(self._builders)}
        self._measurer, self._job, self._sent, self._at, self._heard = start(trial.measure), None, [], None, 0.0
        self.built = self.measured = 0

    def run(self):
        try:
            while (left := self._begun + self._seconds - self._now()) > 0 and self._is_open():
                if self._builders and self._now() >= self._begun + BUILDS * self._seconds:
                    self._stop_building()
                self._give_builds()
                self._give_trial()
                for worker in self._wait([*self._builders, self._measurer], min(GLANCE, left)):
                    what, value = worker.receive()
                    self._from_measurer(what, value) if worker is self._measurer else self._from_builder(worker, what, value)
                limit = SILENCE if self._at is None else HANG
                if self._job and self._now() - self._heard > limit:
                    self._from_measurer("died", f"it did not end within {limit:.0f} s")
        finally:
            for worker in (*self._builders, self._measurer):
                worker.end()

    def _is_open(self):
        return self._job or self._ready or any(self._builds.values()) or any(self._builders.values())

    def _give_builds(self):
        for builder, key in self._builders.items():
            if key is not None:
                continue
            queues = list(self._builds.values())
            own = queues[self._prefers[builder]]
            queue = own or next(filter(None, queues), None)
            if not queue:
                return
            self._builders[builder], task = queue.popleft()
            builder.give(task)

    def _from_builder(self, builder, what, value):
        key, self._builders[builder] = self._builders[builder], None
        if what == "died":
            self._replace(builder)
            value = f"building it: {value}"
        self.built += 1
        for job in self._wanted[key]:
            job.unbuilt.discard(key)
            if value:
                job.failed |= {i: value for i, own in enumerate(job.keys) if own == key}
            if not job.unbuilt:
                heapq.heappush(self._ready, (self._order[job], job))

    def _replace(self, builder):
        builder.end()
        del self._builders[builder]
        fresh = self._start(trial.build)
        self._builders[fresh], self._prefers[fresh] = None, self._prefers.pop(builder)

    def _stop_building(self):
        for builder in self._builders:
            builder.end()
        self._builders = {}
        for queue in self._builds.values():
            queue.clear()
        for i, job in enumerate(self._jobs):
            if job.unbuilt and len(job.left) >= ENOUGH * len(job.keys):
                heapq.heappush(self._ready, (i, job))

    def _give_trial(self):
        if not self._job and self._ready:
            _, self._job = heapq.heappop(self._ready)
            self._sent, self._at, self._heard = self._job.left, None, self._now()
            asked = self._job.trial
            self._measurer.give(replace(asked, contenders=tuple(asked.contenders[i] for i in self._sent)))

    def _from_measurer(self, what, value):
        self._heard = self._now()
        if what == "news":
            self._at = None if value is None else self._sent[value]
            return
        job, self._job = self._job, None
        if what == "died":
            self._measurer.end()
            self._measurer = self._start(trial.measure)
            self._fault(job, value)
        else:
            self._write(job, value)

    def _fault(self, job, why):
        """A fault of the contender that was under way; without one the trial itself fails."""
        job.faults += 1
        if self._at is not None:
            job.failed[self._at] = f"a fault: {why}"
        if self._at is not None and job.faults < FAULTS:
            heapq.heappush(self._ready, (self._order[job], job))
        else:
            self._write(job, {"torch": None, "times": [], "wrong": [], "failed": [], "fault": why})

    def _write(self, job, found):
        shape = job.trial.shape
        failed = [[*job.trial.contenders[i], why] for i, why in sorted(job.failed.items())]
        self.measured += 1
        self._record(
            {
                "op": shape.problem.op,
                "family": shape.family,
                "package": job.trial.package,
                "problem": shape.problem.describe(),
                **found,
                "failed": [*found["failed"], *failed],
                "left_out": sum(key in job.unbuilt for key in job.keys),
                "faults": job.faults,
            }
        )
