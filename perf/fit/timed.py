"""Timed shapes: the records of a GPU, as fits and the report of the choice read them."""

import functools
import hashlib
import inspect
import json
from typing import Any, NamedTuple

import torch

from tritonkernels import problem as problems
from tritonkernels.problem import Problem

from ..measure import records
from ..measure.baselines import yardstick
from ..measure.contenders import PACKAGES
from ..render.measured import NOT_TIMES, RESULTS

IN_A_ROW = ("rotating", "resident")  # calls without a flush between them: their times lack the launch, or DRAM
EXPOSED = 0.2  # of the runs at most may include host time: the median has none then


class Run(NamedTuple):
    """A design with a config, and the median of its times."""

    design: str
    config: dict[str, Any]
    seconds: float


class Timed(NamedTuple):
    family: str
    problem: Problem
    torch: float | None  # seconds
    runs: dict[str, list[Run]]  # by package

    @property
    def key(self):
        return key_of(self.problem.op, self.problem.describe())


def of_gpu(gpu, paths=None):
    """(Timed shapes of the GPU's records, or of the files named; the newest commit among them), in an order of their own."""
    folder = RESULTS / gpu
    paths = paths or [path for path in folder.glob("*.json") if path.name not in NOT_TIMES]
    shapes, commits = [], []
    for path in paths:
        rows = records.read_rows(path)
        shapes += of_suite(rows)
        commits += [(row["environment"]["date"], row["environment"]["commit"].partition("+")[0]) for row in rows]
    return sorted(shapes, key=lambda shape: (shape.key, shape.family, repr(shape.runs))), max(commits, default=("", ""))[1]


def of_suite(rows):
    """The Timed shapes of the records of `perf compare`."""
    groups = {}
    for row in rows:
        if row["ok"] and row["median_ms"] and row["exposed"] <= EXPOSED and not row["case"].endswith(IN_A_ROW):
            groups.setdefault((row["op"], json.dumps(row["problem"], sort_keys=True)), []).append(row)
    for (op, described), own in groups.items():
        problem, runs = problem_of(op, json.loads(described)), {}
        for row in own:
            if row["implementation"] in PACKAGES:
                run = Run(row["design"], row["config"], row["median_ms"] / 1e3)
                runs.setdefault(PACKAGES[row["implementation"]], []).append(run)
        fair = [row for row in own if row["implementation"] == "torch" and row["precision"] == yardstick(problem.precision)]
        yield Timed(own[0]["suite"], problem, min((row["median_ms"] / 1e3 for row in fair), default=None), runs)


def problem_of(op, described):
    """The Problem whose describe() this is."""
    kind = _kinds()[op]
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in described.items()}
    return kind(**{name: getattr(torch, value) if name.endswith("dtype") else value for name, value in values.items()})


@functools.cache
def _kinds():
    return {kind.op: kind for _, kind in inspect.getmembers(problems, inspect.isclass) if getattr(kind, "op", "")}


def key_of(op, described):
    """The same for a problem (its describe()) on every machine and in every version."""
    return hashlib.sha256(json.dumps([op, described], sort_keys=True).encode()).hexdigest()[:16]


def half(key):
    """Which half of the shapes this one is of: "fit" or "judge"."""
    return ("fit", "judge")[int(key, 16) % 2]
