"""Stand-ins for the harness: a launch that runs Python, a correct gemv, a record, the time of simulated workers."""

import dataclasses
from collections.abc import Callable
from typing import Any

from perf.measure.records import Record


class SimulatedTime:
    """The time of workers that are not there, whose `events` (time, ...) are to come. It passes when someone waits for them."""

    def __init__(self):
        self.time, self.log, self.alive = 0.0, [], set()

    def wait(self, waiting, seconds):
        assert all(worker in self.alive for worker in waiting)
        times = [worker.events[0][0] for worker in waiting if worker.events]
        self.time = max(self.time, min([*times, self.time + seconds]))
        return [worker for worker in waiting if worker.events and worker.events[0][0] <= self.time]


@dataclasses.dataclass(frozen=True)
class Act:
    """A Launch that runs Python on the operands."""

    grid: tuple[int, ...]
    on: Callable[..., None]
    tensors: tuple[Any, ...]
    name: str = "act"

    def run(self):
        self.on(*self.tensors)


def right(problem, a, x, y, out):
    product = (a.double() @ x.double()) * problem.alpha
    out.copy_(product if y is None else product + problem.beta * y.double())


def record(**changes):
    fields = {
        "suite": "smoke",
        "case": "3x4",
        "seed": 7,
        "op": "gemv",
        "problem": {"m": 3, "stride": (1, 2), "dtype": "float32"},
        "implementation": "triton",
        "design": "warp_per_row",
        "backend": "gpu",
        "precision": "ieee",
        "target": "h200",
        "environment": {"torch": "2.13", "clock": {"max_sm_mhz": 1980.0}},
        "config": {"BLOCK_M": 4},
        "error": 1e-7,
        "bound": 2e-6,
        "ok": True,
        "median_ms": 0.25,
    }
    return Record(**{**fields, **changes})
