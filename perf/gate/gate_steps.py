"""The steps of `python -m perf gate`: the programs that each runs in parallel, and how to read their output.

Output can be read while they run, and after they were killed.
"""

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

from .processes import Job

SHARDS = 7  # of the tests: of five, two took longer than the limit of a step with 12 cores for each
CORES = len(os.sched_getaffinity(0))
WORKERS = max(1, CORES // max(1, torch.cuda.device_count()) - 1)  # of a step: others run at the same time on other GPUs
PACKAGES = ("cuda_reference", "tritonkernels")
SHARES = max(1, (CORES - 1) // 2)  # parallel processes of a package
SANITIZED = min(8, max(1, WORKERS // 2))  # the same under compute-sanitizer, where a process takes 30 s to start
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # per process: more would only spin
TOOLS = ("memcheck", "racecheck", "synccheck")
# Each tensor is then its own allocation, far from others, so that memcheck sees accesses outside of it.
APART = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


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


def steps(logs):
    """In order: the first two build what the others need; then the longest first, since they may run in parallel."""
    one = None if torch.cuda.device_count() > 1 else "it needs two GPUs, and torch sees one"
    tests = ("tests", "--ignore=tests/properties", "--all")
    return [
        Step("build", (_python(logs / "build.log", "tests.gate.build"),), read_calls, gpus=0),
        Step("calls", tuple(_calls("calls", logs, PACKAGES, SHARES)), read_calls, gpus=0),
        _sanitized("memcheck", logs, PACKAGES, "--padding=4096", environment=APART),
        _sanitized("racecheck", logs, PACKAGES[:1], "--racecheck-num-workers=2", only=("--new", "--problems", "ragged")),
        _pytest("properties", logs, "tests/properties"),
        *(_pytest(f"tests-{i}", logs, *tests, f"--shard={i}/{SHARDS}") for i in range(1, SHARDS + 1)),
        _sanitized("synccheck", logs, PACKAGES[:1], only=("--new", "--problems", "smallest", "ragged")),
        _pytest("two_gpus", logs, "tests/operations/test_two_gpus.py", instead=one, gpus=2),
    ]


def _python(log, *arguments):
    return Job((sys.executable, "-m", *arguments), log)


def _pytest(name, logs, *arguments, **more):
    log = logs / f"{name}.log"
    options = ["-q", "--color=no", "-m", "gpu", "-n", str(WORKERS), "--dist=worksteal", "--max-worker-restart=100000"]
    recorded = ["-p", "perf.gate.gate_pytest", f"--outcomes={log.with_suffix('.jsonl')}"]
    return Step(name, (_python(log, "pytest", *options, *recorded, *arguments),), read_tests, **more)


def _calls(name, logs, packages, shares, only=()):
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
