"""The steps of `python -m perf gate`: the programs that each runs in parallel, and how to read their output."""

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from cuda_reference.toolchain import cuda_home
from tritonkernels import OPS

from .. import ROOT
from ..measure import kernels
from ..processes import Job
from . import plan
from .findings import Findings, read_calls, read_instrumented, read_sanitized, read_tests

CORES = len(os.sched_getaffinity(0))
WORKERS = max(1, CORES // max(1, torch.cuda.device_count()) - 1)  # of a step: others run at the same time on other GPUs
PACKAGES = ("cuda_reference", "tritonkernels")
SHARES = min(32, max(1, CORES - 1))  # parallel processes of a package: those of CUDA compile nothing and soon end
SANITIZED = min(16, WORKERS)  # parallel processes, of all packages, under compute-sanitizer, where one takes 30 s to start
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # per process: more would only spin
TOOLS = ("memcheck", "racecheck", "synccheck")
# Each tensor is then its own allocation, far from others, so that memcheck sees accesses outside of it.
APART = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
# Triton's own sanitizers, and what a source of a design has that each is for: ConSan sees shared memory that is read or written
# before a barrier or a copy allows it, GSan global memory that blocks share without a release and an acquire.
INSTRUMENTED = {"consan": r"triton\.experimental|language\.descriptor", "gsan": r"\batomic_\w+\("}
SINCE = (3, 9)  # of Triton: 3.7 compiles some kernels under ConSan for minutes, and has no GSan


@dataclass(frozen=True)
class Step:
    name: str
    jobs: tuple[Job, ...]
    read: Callable[[Path], Findings]  # of a job, given its log
    instead: str | None = None  # why it is skipped here
    gpus: int = 1  # how many it needs; 0: the whole machine


def steps(logs, package=None, quick=False):
    """The steps of plan.names. `package`: only what it takes part in. `quick`: of each test the cases of `make test`."""
    packages, some = ((package,), [f"--package={package}"]) if package else (PACKAGES, [])
    every = [*["--all"] * (not quick), *some]
    return [_step(name, logs, packages, some, every) for name in plan.names(package, quick)]


def _step(name, logs, packages, some, every):
    check, family, shard = plan.parts(name)
    of = plan.FAMILIES.get(family, OPS)
    if check == "build":
        return Step(name, (_python(logs / f"{name}.log", "tests.gate.build", *of),), read_calls, gpus=0)
    if check == "calls":
        jobs = _calls(name, logs, packages, SHARES * len(packages), ("--operations", *of))
        return Step(name, tuple(jobs), read_calls, gpus=0)
    if check == "memcheck":
        return _sanitized(name, logs, packages, "--padding=4096", only=("--operations", *of), environment=APART)
    if check == "racecheck":
        only = ("--new", "--problems", "ragged")
        return _sanitized(name, logs, PACKAGES[:1], "--racecheck-num-workers=2", only=only)
    if check == "synccheck":
        return _sanitized(name, logs, PACKAGES[:1], only=("--new", "--problems", "smallest", "ragged"))
    if check == "consan":
        return _instrumented(name, logs)
    if check == "gsan":  # it takes two neighbours of 16 bits for the same memory
        return _instrumented(name, logs, "--kinds", "float32", "float32 tf32", "float32 tf32x3")
    if check == "two_gpus":
        one = None if torch.cuda.device_count() > 1 else "it needs two GPUs, and torch sees one"
        return _pytest(name, logs, "tests/operations/test_two_gpus.py", *some, instead=one, gpus=2)
    if check == "large":  # the tensors of two tests may not fit on a GPU
        return _pytest(name, logs, "tests/large", "--all", f"--family={family}", *some, workers=1)
    if check == "around":
        return _pytest(name, logs, *(f"tests/{folder}" for folder in plan.AROUND), *every)
    folders = [f"tests/{folder}" for folder in plan.ACROSS] if family in plan.FAMILIES else ["tests"]
    left_out = [f"--ignore=tests/{folder}" for folder in plan.AROUND] + _ignoring_others(family)
    return _pytest(name, logs, *folders, *left_out, f"--family={family}", f"--shard={shard}", *every)


def _ignoring_others(family):
    """Options by which pytest does not collect the own files of other families, which takes it seconds."""
    others = [op for name, ops in plan.FAMILIES.items() if name != family for op in ops]
    return [
        f"--ignore-glob=tests/{folder}/{name}" for folder in plan.ACROSS for op in others for name in (op, f"test_{op}[_.]*")
    ]


def _python(log, *arguments):
    return Job((sys.executable, "-m", *arguments), log)


def _pytest(name, logs, *arguments, workers=WORKERS, **more):
    log = logs / f"{name}.log"
    options = ["-q", "--color=no", "-m", "gpu", "-n", str(workers), "--dist=worksteal", "--max-worker-restart=100000"]
    recorded = ["-p", "perf.gate.gate_pytest", f"--outcomes={log.with_suffix('.jsonl')}"]
    return Step(name, (_python(log, "pytest", *options, *recorded, *arguments),), read_tests, **more)


def _calls(name, logs, packages, processes, only=()):
    shares = max(1, processes // len(packages))
    for package in packages:
        for i in range(1, shares + 1):
            command = (sys.executable, "-m", "tests.gate.child", package, f"--share={i}/{shares}", *only)
            yield Job(command, logs / f"{name}-{package}-{i}.log", ONE_THREAD)


def _sanitized(name, logs, packages, *options, only=(), environment=None):
    """The calls under one of compute-sanitizer's tools, each with its own port to the program that it watches."""
    tool, jobs = plan.parts(name)[0], []
    for number, job in enumerate(_calls(name, logs, packages, SANITIZED, only)):
        before = [
            *(compute_sanitizer(), "--tool", tool, *options, "--log-file", str(job.log.with_suffix(".sanitizer"))),
            *("--error-exitcode=99", "--check-exit-code=no", "--report-api-errors=no", "--destroy-on-device-error=kernel"),
            *("--print-limit=10000", "--show-backtrace=no", "--target-processes=application-only", "--launch-timeout=0"),
            f"--port={50000 + 1000 * TOOLS.index(tool) + 20 * number}",
        ]
        jobs.append(Job((*before, *job.command), job.log, job.environment | (environment or {})))
    return Step(name, tuple(jobs), read_sanitized)


def _instrumented(mode, logs, *only):
    """Calls under a sanitizer that Triton compiles into the kernels. What it finds is the kernel's fault."""
    designs = [name for name, text in _triton_designs() if re.search(INSTRUMENTED[mode], text)]
    problems = ("ragged", "ragged, whole vectors along K", "ragged, long K")
    only = (*only, "--new", "--go-on", "--designs", *designs, "--problems", *problems)
    jobs = _calls(mode, logs, PACKAGES[1:], WORKERS, only)
    jobs = tuple(Job(job.command, job.log, job.environment | instrumentation(mode, logs)) for job in jobs)
    return Step(mode, jobs, read_instrumented, instead=uninstrumented())


def instrumentation(mode, folder):
    """The environment in which Triton compiles the sanitizer into kernels, and keeps these apart."""
    return {"TRITON_INSTRUMENTATION_MODE": mode, "TRITON_CACHE_DIR": str(folder / f"{mode}-kernels")}


def _triton_designs():
    """(operation/design, its source and all that it is made of)"""
    for op in OPS:
        for file in sorted((ROOT / "tritonkernels" / op).glob("[!_]*.py")):
            yield f"{op}/{file.stem}", "\n".join(used.read_text() for used in kernels.reached([file]))


def uninstrumented():
    """Why Triton's sanitizers cannot run here, or None."""
    version = importlib.metadata.version("triton")
    if tuple(map(int, version.split(".")[:2])) < SINCE:
        return f"it needs Triton {SINCE[0]}.{SINCE[1]} or newer, and this is {version}"
    if torch.cuda.is_available() and torch.cuda.get_device_capability() < (9, 0):
        return "it needs a GPU of compute capability 9.0 or newer"
    return None


def compute_sanitizer():
    return shutil.which("compute-sanitizer") or str(cuda_home() / "bin/compute-sanitizer")
