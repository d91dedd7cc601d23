"""The steps of `python -m perf gate`: which programs each runs side by side, and how to read what they leave behind.

What they leave can be read while they run, and after they were killed.
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

SHARDS = 3  # of the tests, which with nothing built take more time than a step has
WORKERS = max(1, len(os.sched_getaffinity(0)) - 1)
SHARES = max(1, min(4, WORKERS // 2))  # processes of a package side by side; under compute-sanitizer each takes 30 s to start
PACKAGES = ("cuda_reference", "tritonkernels")
# Tensors are allocations of their own then, far apart, so that memcheck sees what is read or written beside one.
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
    instead: str | None = None  # why it cannot run here


def steps(logs):
    """In order: what the first two build, the others find built."""
    shares = [(package, f"{i}/{SHARES}") for package in PACKAGES for i in range(1, SHARES + 1)]
    of_cuda = [share for share in shares if share[0] == PACKAGES[0]]
    one = None if torch.cuda.device_count() > 1 else "there is one GPU here"
    tests = ("tests", "--ignore=tests/properties")
    return [
        Step("build", (_python(logs / "build.log", "tests.gate.build"),), read_calls),
        Step("calls", tuple(_python(_log(logs, "calls", share), *_calls(share)) for share in shares), read_calls),
        _sanitized("memcheck", logs, shares, "--padding=4096", environment=APART),
        *(_pytest(f"tests-{i}", logs, *tests, f"--shard={i}/{SHARDS}") for i in range(1, SHARDS + 1)),
        _pytest("properties", logs, "tests/properties"),
        _sanitized("racecheck", logs, of_cuda, "--racecheck-num-workers=2", problems=("ragged",)),
        _sanitized("synccheck", logs, of_cuda),
        _pytest("two_gpus", logs, "tests/test_two_gpus.py", instead=one),
    ]


def _python(log, *arguments, before=(), environment=None):
    return Job((*before, sys.executable, "-m", *arguments), log, environment or {})


def _log(logs, step, share):
    package, part = share
    return logs / f"{step}-{package}-{part.partition('/')[0]}.log"


def _calls(share, problems=()):
    package, part = share
    return "tests.gate.child", package, f"--share={part}", *(("--problems", *problems) if problems else ())


def _pytest(name, logs, *arguments, instead=None):
    log = logs / f"{name}.log"
    options = ["-q", "--color=no", "-m", "gpu", "-n", str(WORKERS), "--dist=worksteal", "--max-worker-restart=100000"]
    recorded = ["-p", "perf.gate_pytest", f"--outcomes={log.with_suffix('.jsonl')}"]
    return Step(name, (_python(log, "pytest", *options, *recorded, *arguments),), read_tests, instead)


def _sanitized(tool, logs, shares, *options, problems=(), environment=None):
    """The calls under one of compute-sanitizer's tools. A port for each: they talk to what they watch."""
    jobs = []
    for number, share in enumerate(shares):
        log = _log(logs, tool, share)
        command = [
            *(compute_sanitizer(), "--tool", tool, *options, "--log-file", str(log.with_suffix(".sanitizer"))),
            *("--error-exitcode=99", "--check-exit-code=no", "--report-api-errors=no", "--destroy-on-device-error=kernel"),
            *("--print-limit=10000", "--show-backtrace=no", "--target-processes=application-only", "--launch-timeout=0"),
            f"--port={50000 + 20 * number}",
        ]
        jobs.append(_python(log, *_calls(share, problems), before=command, environment=environment))
    return Step(tool, tuple(jobs), read_sanitized)


def compute_sanitizer():
    return shutil.which("compute-sanitizer") or str(cuda_home() / "bin/compute-sanitizer")


def read_tests(log):
    """What perf/gate_pytest.py recorded. Of several outcomes of a test the first that is bad counts."""
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
    made = sum(line.startswith("RUN ") for line in lines)
    bad = dict(line.removeprefix("WRONG ").split(": ", 1) for line in lines if line.startswith("WRONG "))
    if lost := [line for line in lines if line.startswith("LOST ")]:
        bad[log.stem] = lost[0]
    return Findings(Counter(passed=max(0, made - len(bad)), failed=len(bad)), bad)


def read_sanitized(log):
    """The same calls, and compute-sanitizer's own log: each kind of error with its kernel and how often it was printed."""
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
    """{(what and where, a detail of the first): how often}. A report is a line and those after it that are indented."""
    found, first = Counter(), {}
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
            found[name] += 1
    return {(name, first[name]): times for name, times in found.items()}


def _lines(path):
    """The whole lines of a file that may be missing, or in the middle of being written."""
    return path.read_text(errors="replace").split("\n")[:-1] if path.exists() else []
