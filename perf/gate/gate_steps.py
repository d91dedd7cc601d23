"""The steps of `python -m perf gate`: the programs that each runs in parallel, and how to read their output.

Output can be read while they run, and after they were killed.
"""

import importlib.metadata
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from cuda_reference.toolchain import cuda_home
from tritonkernels import OPS

from .. import ROOT
from ..measure import kernels
from .processes import Job

SHARDS = 7  # of the tests: of five, two took longer than the limit of a step with 12 cores for each
SHARDS_OF_ONE = 4  # of those of one package
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
class Findings:
    counts: Counter
    failures: dict[str, str] = field(default_factory=dict)  # by name, all of them
    warnings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    name: str
    jobs: tuple[Job, ...]
    read: Callable[[Path], Findings]  # of a job, given its log
    instead: str | None = None  # why it is skipped here
    gpus: int = 1  # how many it needs; 0: the whole machine


def steps(logs, package=None, quick=False):
    """In order: the first two build what the others need; then the longest first, since they may run in parallel. `package`:
    only what it takes part in. `quick`: of each test the cases of `make test`."""
    one = None if torch.cuda.device_count() > 1 else "it needs two GPUs, and torch sees one"
    packages, shards = ((package,), SHARDS_OF_ONE) if package else (PACKAGES, SHARDS)
    some = [f"--package={package}"] * bool(package)
    tests = ("tests", "--ignore=tests/properties", "--ignore=tests/large", *["--all"] * (not quick), *some)
    every = [
        Step("build", (_python(logs / "build.log", "tests.gate.build"),), read_calls, gpus=0),
        Step("calls", tuple(_calls("calls", logs, packages, SHARES * len(packages))), read_calls, gpus=0),
        _sanitized("memcheck", logs, packages, "--padding=4096", environment=APART),
        _sanitized("racecheck", logs, PACKAGES[:1], "--racecheck-num-workers=2", only=("--new", "--problems", "ragged")),
        _instrumented("consan", logs),
        # It takes two neighbours of 16 bits for the same memory.
        _instrumented("gsan", logs, "--kinds", "float32", "float32 tf32", "float32 tf32x3"),
        _pytest("properties", logs, "tests/properties", *some),
        *(_pytest(f"tests-{i}", logs, *tests, f"--shard={i}/{shards}") for i in range(1, shards + 1)),
        _pytest("large", logs, "tests/large", "--all", *some, workers=1),  # the tensors of two tests may not fit on a GPU
        _sanitized("synccheck", logs, PACKAGES[:1], only=("--new", "--problems", "smallest", "ragged")),
        _pytest("two_gpus", logs, "tests/operations/test_two_gpus.py", *some, instead=one, gpus=2),
    ]
    return [step for step in every if not (package and step.name in ("build", "racecheck", "synccheck"))]


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


def _sanitized(tool, logs, packages, *options, only=(), environment=None):
    """The calls under one of compute-sanitizer's tools, each with its own port to the program that it watches."""
    jobs = []
    for number, job in enumerate(_calls(tool, logs, packages, SANITIZED, only)):
        before = [
            *(compute_sanitizer(), "--tool", tool, *options, "--log-file", str(job.log.with_suffix(".sanitizer"))),
            *("--error-exitcode=99", "--check-exit-code=no", "--report-api-errors=no", "--destroy-on-device-error=kernel"),
            *("--print-limit=10000", "--show-backtrace=no", "--target-processes=application-only", "--launch-timeout=0"),
            f"--port={50000 + 1000 * TOOLS.index(tool) + 20 * number}",
        ]
        jobs.append(Job((*before, *job.command), job.log, job.environment | (environment or {})))
    return Step(tool, tuple(jobs), read_sanitized)


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


def read_tests(log):
    """What gate_pytest.py recorded. Of several outcomes of a test the first bad one counts."""
    outcomes = {}
    for line in _lines(log.with_suffix(".jsonl")):
        entry = json.loads(line)
        if outcomes.get(entry["name"], {}).get("outcome") not in ("failed", "error"):
            outcomes[entry["name"]] = entry
    bad = {name: entry["why"] for name, entry in outcomes.items() if entry["outcome"] in ("failed", "error")}
    return Findings(Counter(entry["outcome"] for entry in outcomes.values()), bad)


def read_calls(log):
    """What tests/gate/child.py and build.py print."""
    lines = _lines(log)
    started = sum(line.startswith("RUN ") for line in lines)
    wrong = dict(line.removeprefix("WRONG ").split(": ", 1) for line in lines if line.startswith("WRONG "))
    ended, last = any(line.startswith("DONE ") for line in lines), lines[-1] if lines else "none"
    cut = {} if ended else {log.stem: f"it did not end; its last line: {last}"}
    return Findings(Counter(passed=max(0, started - len(wrong) - len(cut)), failed=len(wrong)), wrong | cut)


def read_instrumented(log):
    """The calls, and the assertions that Triton's sanitizer compiled into their kernels, where they failed."""
    calls, found, call = read_calls(log), {}, log.stem
    for line in _lines(log):
        call = line.removeprefix("RUN ") if line.startswith("RUN ") else call
        if failed := re.match(r"(\S+:\d+): .*Assertion `(.*)` failed", line):
            found.setdefault(call, {})[f"{failed[2]} at {failed[1]}"] = None
    failures = {call: "; ".join([*messages, calls.failures.get(call, "")]) for call, messages in found.items()}
    return Findings(calls.counts, calls.failures | failures)


def read_sanitized(log):
    """The calls, and compute-sanitizer's own log: each kind of error with its kernel, and how often it was printed."""
    calls, lines = read_calls(log), [line.removeprefix("=========") for line in _lines(log.with_suffix(".sanitizer"))]
    summary = next((line for line in lines if "ERROR SUMMARY:" in line or "RACECHECK SUMMARY:" in line), None)
    if summary is None:
        missing = {f"{log.stem}, no summary": " ".join(lines[-3:]).strip() or "no output"}
        return Findings(calls.counts, calls.failures | missing)
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (error|warning)", summary)}
    failures, warnings = {}, {}
    for (name, detail), times in _reports(lines).items():
        into = warnings if name.startswith("Warning") else failures
        into[name] = f"{times} times, {detail}"
    if counts.get("error") and not failures:
        failures[f"{log.stem}, summary"] = summary.strip()
    return Findings(calls.counts + Counter(counts), calls.failures | failures, warnings)


def _reports(lines):
    """{(error and place, details of the first): count}. A report is a line and the indented ones that follow it."""
    counts, first = Counter(), {}
    for index, line in enumerate(lines):
        if re.match(r" [A-Z]", line) and not re.search(r"SUMMARY|COMPUTE-SANITIZER", line):
            indented = []
            for rest in lines[index + 1 :]:
                if not rest.startswith("  "):
                    break
                indented.append(rest.strip())
            where = [text for text in indented if re.match(r"(at|and) ", text)][:1]
            name = " ".join([line.strip(), *where])
            first.setdefault(name, "; ".join(text for text in indented if text not in where))
            counts[name] += 1
    return {(name, first[name]): times for name, times in counts.items()}


def _lines(path):
    """The complete lines of a file that may be missing or still be written."""
    return path.read_text(errors="replace").split("\n")[:-1] if path.exists() else []
