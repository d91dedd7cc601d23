"""Timed shapes: the records of a GPU, as fits and the report of the choice read them."""

import json
from typing import Any, NamedTuple

from tritonkernels.gemm import GEMM
from tritonkernels.matmul import MATMUL
from tritonkernels.operations.gemm.as_matmul import TO_CUDA_CORES
from tritonkernels.operations.matmul import as_gemm
from tritonkernels.operations.matmul.as_gemm import TO_GEMM
from tritonkernels.problem import Problem
from tritonkernels.target import Target

from ..measure import classes, measured, records, shapes, sweep_records
from ..measure.baselines import yardstick
from ..measure.contenders import PACKAGES
from ..measure.measured import RESULTS
from ..measure.sweep_records import problem_of

NAMES_IN_GEMM = {MATMUL.named(TO_GEMM, rung.name): rung.name for rung in GEMM.own} | {
    name: GEMM.named(TO_CUDA_CORES, name) for name in TO_CUDA_CORES.lent
}  # by the names in matmul
RESIDENT = "resident"  # in the case's name: its times lack DRAM
EXPOSED = 0.2  # of the runs at most may include host time: the median has none then


class Run(NamedTuple):
    """A design with a config, and the median of its times; of a call in a row of them, of which only the first waits for a
    launch, if it was short."""

    design: str
    config: dict[str, Any]
    seconds: float
    in_a_row: bool = False


class Timed(NamedTuple):
    family: str
    problem: Problem
    torch: float | None  # seconds
    runs: dict[str, list[Run]]  # by package
    judges: bool = False  # drawn at random, as judging a choice needs
    date: str = ""  # and time, in the form of ISO 8601
    source: str = ""  # the key of the shape whose runs these are, if they were measured for another operation

    @property
    def key(self):
        return shapes.key_of(self.problem.op, self.problem.describe())

    @property
    def half(self):
        """ "fit" or "judge"."""
        return shapes.half(self.source or self.key)


class OfGpu(NamedTuple):
    """The shapes of a GPU's records, in an order of their own, and the commit and date of the newest."""

    shapes: list[Timed]
    commit: str
    date: str


def of_architecture(arch):
    """The Targets of the architecture that have records, the newest first."""
    targets = (Target.named(folder.name) for folder in measured.gpus())
    return [target for target in targets if target.arch == arch]


def of_gpu(gpu, paths=None):
    """What was timed, by the GPU's records or the files that are named.

    Nothing is fitted to records of classes, which judge speed.
    """
    folder = RESULTS / gpu
    paths = paths or [*sweep_records.files(folder), *measured.files(folder)]
    found, environments = [], []
    for path in paths:
        if sweep_records.is_sweep(path):
            rows = sweep_records.load([path])
            found += map(of_sweep, rows)
            environments += [row.environment for row in rows]
        else:
            rows = [row for row in records.read_rows(path) if row["suite"] != classes.SUITE]
            found += of_suite(rows)
            environments += [row["environment"] for row in rows]
    found += [of_gemm for shape in found if (of_gemm := as_gemm_s(shape))]
    newest = max(environments, key=lambda e: (e["date"], e["commit"]), default={"commit": "", "date": ""})
    ordered = sorted(found, key=lambda shape: (shape.key, shape.family, repr(shape.runs)))
    return OfGpu(ordered, newest["commit"].partition("+")[0], newest["date"])


def as_gemm_s(shape):
    """A product of matmul that gemm computes as well, with the runs of the designs that both have: its choice learns from them,
    too. None for other shapes."""
    problem = shape.problem
    if problem.op != "matmul" or as_gemm.refuses(problem):
        return None
    (of_gemm,) = as_gemm.problems(problem)
    shared = {
        package: [run._replace(design=NAMES_IN_GEMM[run.design]) for run in runs if run.design in NAMES_IN_GEMM]
        for package, runs in shape.runs.items()
    }
    return shape._replace(problem=of_gemm, torch=None, runs=shared, source=shape.key) if any(shared.values()) else None


def of_sweep(row):
    """The Timed shape of a row of `perf sweep`."""
    runs = {
        package: [Run(design, config, us / 1e6) for design, config, us, _ in times]
        for package, times in row.times.items()
        if times
    }
    return Timed(row.family, row.problem, row.torch[1] / 1e6 if row.torch else None, runs, True, row.environment["date"])


def of_suite(rows):
    """The Timed shapes of the records of `perf compare`."""
    groups = {}
    for row in rows:
        if row["ok"] and row["median_ms"] and row["exposed"] <= EXPOSED and not row["case"].endswith(RESIDENT):
            groups.setdefault((row["op"], json.dumps(row["problem"], sort_keys=True)), []).append(row)
    for (op, described), own in groups.items():
        problem, runs = problem_of(op, json.loads(described)), {}
        for row in own:
            if row["implementation"] in PACKAGES:
                run = Run(row["design"], row["config"], row["median_ms"] / 1e3, _is_in_a_row(row))
                runs.setdefault(PACKAGES[row["implementation"]], []).append(run)
        fair = [row for row in own if row["implementation"] == "torch" and row["precision"] == yardstick(problem.precision)]
        yield Timed(
            own[0]["suite"],
            problem,
            min((row["median_ms"] / 1e3 for row in fair), default=None),
            runs,
            date=own[0]["environment"].get("date", ""),
        )


def _is_in_a_row(row):
    return row["case"].endswith("rotating") or (row.get("calls") or 1) > 1
