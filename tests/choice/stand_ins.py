"""A GPU that is not there: a clock that jumps, and a gemv whose designs take the time that a test says."""

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cuda_reference.launch import config_of
from tritonkernels.choice.shipped import ShippedTable
from tritonkernels.choice.table import UserTable
from tritonkernels.choice.work import Work
from tritonkernels.design import Design
from tritonkernels.gemv import GEMV
from tritonkernels.library import Library
from tritonkernels.operation import Rung
from tritonkernels.target import Target

H200 = Target.named("h200")


class SimulatedGpu:
    """A host's clock and, ahead of it, a GPU's queue, in which work takes `seconds` and random noise."""

    def __init__(self, noise=0.02, seed=0):
        self.time, self._queue, self._noise, self._random = 0.0, 0.0, noise, random.Random(seed)

    def work(self, seconds):
        self.time += 1e-5
        self._queue = max(self._queue, self.time) + seconds * (1 + abs(self._random.gauss(0, self._noise)))

    def now(self):
        return self.time

    def flush(self):
        self.work(2e-5)

    def event(self):
        return SimulatedEvent(max(self._queue, self.time))

    def synchronize(self):
        self.time = max(self.time, self._queue)

    def replay(self, call):
        return None


@dataclasses.dataclass
class SimulatedEvent:
    at: float

    def query(self):
        return False

    def elapsed_time(self, later):
        return 1e3 * (later.at - self.at)


@dataclasses.dataclass
class Act:
    """A Launch that runs Python."""

    act: Callable[..., None]
    arguments: tuple[Any, ...]
    grid: tuple[int, ...] = (1,)
    name: str = "act"

    def run(self):
        self.act(*self.arguments)


def right(a, x, out):
    out.copy_(a @ x)


def built(library, target, call, candidates, soon, late):
    """As builds.run, where all is built already."""
    return dict.fromkeys(candidates)


def library(gpu, **designs):
    """A Library of gemv: {name: [(seconds, what it does to (a, x, out)) of each config]}, the preferred design last."""

    def design(name, configs):
        def launches(problem, config, a, x, y, scale, out):
            seconds, act = configs[config["number"]]

            def run():
                act(a[0], x[0], out[0])
                gpu.work(seconds)

            yield Act(run, ())

        numbered = [config_of(number=number) for number in range(len(configs))]

        def work(problem, config, target):
            """The model expects the last design to be the fastest, and of its configs the first."""
            rank = 1 + config["number"] + 1000 * (len(designs) - list(designs).index(name))
            return (Work(1, 32, 0.0, "ieee", 0.0, 1e6 * rank, 1),)

        return Design(name=name, configs=lambda problem, target: numbered, launches=launches, work=work)

    served = Library(
        "tritonkernels",
        lambda device: H200,
        runs_on=lambda t: None,
        compiler=lambda: "Triton 3.7",
        tuned=UserTable(),
        shipped=ShippedTable(Path("no such folder")),
    )
    served.serve(dataclasses.replace(GEMV, own=tuple(Rung(name, "for a test", "nothing") for name in designs)))
    served._designs["gemv"] = tuple(design(*item) for item in designs.items())
    return served


def operands(m=64, n=48):
    return torch.randn(m, n), torch.randn(n)
