"""`perf compare --suite classes`: what is there is kept, the rest is shared among all GPUs while kernels are built.

Each GPU has a process that measures, most other cores one that builds. Where a process ends or hangs, the rows of its case say
so.
"""

import contextlib
import dataclasses
import functools
import math
import os
import sys
import time

import torch

from tritonkernels.design import as_dict
from tritonkernels.target import Target

from .. import processes
from ..arguments import count, positive
from ..show import table
from . import class_table as by_class
from . import classes, contenders, kernels, records, trial
from .comparison import Comparison, GpuLost
from .crew import Crew, Job
from .environment import environment
from .monitor import Monitor
from .shapes import prepared

TELL = 30.0  # seconds between lines of progress
SPARE = 2  # cores for each GPU, of the process that measures and of the driver

OPTIONS = ("classes", "per_class", "minutes")
OF_OTHERS = ("op", "design", "peers", "contender", "plot", "against", "refusals")


def add_arguments(parser):
    own, names = parser.add_argument_group(f"of --suite {classes.SUITE}"), ", ".join(f"'{name}'" for name in classes.CLASSES)
    choices = {"choices": classes.CLASSES, "dest": "classes", "metavar": "NAME"}
    own.add_argument("--class", nargs="+", action="extend", help=f"default: all, which are {names}", **choices)
    own.add_argument("--per-class", type=count, metavar="N", help=f"cases of each; default: {classes.PER_CLASS}")
    limit = "stop before so long; the same command with the same --json goes on; default: no limit"
    own.add_argument("--minutes", type=positive("minutes"), metavar="N", help=limit)


def check(options, parser):
    """Refuse options of the classes for other suites, and those that the classes do not have."""
    if options.suite != classes.SUITE:
        wrong, why = OPTIONS, f"it is for --suite {classes.SUITE}"
    else:
        wrong, why = OF_OTHERS if not options.records else (), f"it is not for --suite {classes.SUITE}"
    for name in wrong:
        if getattr(options, name):
            flag = "class" if name == "classes" else name.replace("_", "-")
            parser.error(f"argument --{flag}: {why}")


def main(options):
    names = [name for name in classes.CLASSES if name in (options.classes or classes.CLASSES)]
    cases = classes.drawn(names, options.seed, options.per_class or classes.PER_CLASS)
    if options.list:
        print("\n".join(f"{case.op} {case.name}" for case in cases))
        return 0
    packages = options.implementation or list(contenders.PACKAGES)
    run, stopped = Run(cases, options.seed, packages, options.commit, options.json), ""
    try:
        run.run(60 * options.minutes if options.minutes else math.inf, options.quiet)
    except KeyboardInterrupt:
        stopped = "Stopped by Ctrl-C: "
    if options.csv:
        records.write_csv(options.csv, run.rows)
    status = by_class.show(by_class.of_records(run.rows), options.quiet)
    measured = len(cases) - run.kept - len(run.left) - run.gpu_only
    print(f"{stopped}{measured} cases measured, {run.kept} kept, {len(run.left)} not run yet, {run.gpu_only} GPU-only not run")
    return 130 if stopped else status


class Run:
    """`rows` are the cases' own, and `kept` of them were in the file; `others` is what else is there. `left` are the cases
    that are to run, `gpu_only` is how many cannot without a GPU."""

    def __init__(self, cases, seed, packages, commit=None, path=None):
        self._device = contenders.device()
        self._environment = environment(self._device, commit)
        self._seed, self._packages, self._path, self._commit = seed, packages, path, commit
        by_case, self.others = {(case.op, case.name): [] for case in cases}, []
        for row in records.read_rows(path) if path and path.exists() else ():
            own = by_case.get((row["op"], row["case"])) if self._is_of_this_run(row) else None
            (self.others if own is None else own).append(row)
        self.others = [records.Record(**row) for row in self.others]
        done = {key for key, rows in by_case.items() if self._is_done(rows)}
        self.rows, self.kept = [records.Record(**row) for key in done for row in by_case[key]], len(done)
        to_do = [case for case in cases if (case.op, case.name) not in done]
        is_runnable = [self._device.type == "cuda" or not case.gpu_only for case in to_do]
        self.left = [case for case, runnable in zip(to_do, is_runnable) if runnable]
        self.gpu_only = len(to_do) - len(self.left)

    def _is_of_this_run(self, row):
        same_gpu = row["environment"]["device"] == self._environment["device"]
        return same_gpu and (row["suite"], row["seed"]) == (classes.SUITE, self._seed)

    def _is_done(self, rows):
        return set(self._packages) <= {row["implementation"] for row in rows} and all(map(kernels.is_current, rows))

    def run(self, seconds, quiet=False):
        """Measure what is left, as far as the seconds last."""
        if not self.left:
            return
        begun, total = time.monotonic(), len(self.left)
        on_gpu, said = self._device.type == "cuda", begun
        gpus = processes.gpus() if on_gpu else [""]
        builders = max(1, len(os.sched_getaffinity(0)) - SPARE * len(gpus)) if on_gpu else 0
        with table.progress(total, quiet) as advance, Crew(build, builders, measure, gpus) as crew:
            target = Target.live(self._device) if on_gpu else None
            settings = self._seed, self._commit, tuple(self._packages)
            jobs = [Job((case, *settings), builds(case, self._packages, target)) for case in self.left]

            def answered(job, what, value):
                nonlocal said
                case, *_ = job.task
                rows, why, lost = value if what == "done" else ([], value, True)
                self.left.remove(case)
                self.rows += [*rows, *self._unrun(case, rows, why)]
                if self._path:
                    records.write_json(self._path, [*self.others, *self.rows])
                advance(f"{case.op} {case.name}")
                if not quiet and time.monotonic() - said > TELL:
                    said = time.monotonic()
                    print(f"{total - len(self.left)} of {total} cases in {said - begun:.0f} s", file=sys.stderr, flush=True)
                return lost

            crew.run(jobs, seconds - (time.monotonic() - begun), answered)

    def _unrun(self, case, rows, why):
        """A row for each package that has none of the case."""
        problem = prepared(case).problem
        known = {row.implementation for row in rows}
        for package in (name for name in self._packages if name not in known):
            yield records.Record(
                suite=classes.SUITE,
                case=case.name,
                seed=self._seed,
                op=case.op,
                problem=problem.describe(),
                implementation=package,
                design="",
                backend=contenders.backend_of(package, self._device),
                precision=problem.precision,
                target=_target(package, self._device),
                environment=self._environment,
                message=f"not run: {why}",
            )


def _target(package, device):
    return Target.live(device).name if device.type == "cuda" else contenders.CPU_BACKENDS[package]


def builds(case, packages, target):
    """{key: (case, package, contender)} of what each package chooses; nothing without a GPU, where a first call builds."""
    found = {}
    for package in packages if target else ():
        name = contenders.PACKAGES[package]
        with contextlib.suppress(Exception):  # it comes again where the case is measured, and is a row then
            design, config = trial.library(name).choose(prepared(case).problem, target)
            contender = design.name, as_dict(config)
            launches = trial.launches(case, name, target, contender)
            found[frozenset(map(_source, launches)) if package == "cuda" else (case.op, case.name)] = case, name, contender
    return found


def _source(launch):
    return launch.source.header, tuple(launch.part or launch.source.expressions)


build = functools.partial(trial.build, whole=False)


def measure(task, tell):
    """(rows of the case, why others are missing, whether the process can do no more)"""
    case, seed, commit, packages = task
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # memory that torch keeps of the case before is none to load kernels into
    comparison, why, lost = _comparison(seed, commit, packages), None, False
    before, refused = len(comparison.records), len(comparison.refusals)
    try:
        comparison.run(case)
    except GpuLost as error:
        why, lost = f"a kernel's fault: {error}", True
    except Exception as error:  # such as too little memory for the reference
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    refusals = comparison.refusals[refused:]
    ours = [dataclasses.replace(r, message=f"refused: {text}") for r, text in refusals if r.implementation in packages]
    for record in ours:
        record.design = record.design or ""
    return [*comparison.records[before:], *ours], why, lost


@functools.cache
def _comparison(seed, commit, packages):
    device = contenders.device()
    monitor = Monitor(device).__enter__()  # until the process ends
    return Comparison(classes.SUITE, seed, None, device, commit, packages, monitor=monitor, thorough=True)
