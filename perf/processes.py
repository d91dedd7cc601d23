"""Runs programs in parallel within a time limit, each in its own process group, and leaves no process behind."""

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import ROOT

GLANCE = 0.05  # seconds between checks whether it still runs


@dataclass(frozen=True)
class Job:
    command: tuple[str, ...]
    log: Path  # receives its output
    environment: dict[str, str] = field(default_factory=dict)  # in addition to this process's


def run(jobs, limit, watch=lambda: None, grace=10):
    """The exit statuses; None for a job that exceeded `limit` seconds: it gets SIGTERM, and `grace` seconds later SIGKILL.

    `watch` is called while they run.
    """
    deadline, started = time.monotonic() + limit, []
    try:
        for job in jobs:
            started.append(_start(job))
        while any(process.poll() is None for process in started) and time.monotonic() < deadline:
            time.sleep(GLANCE)
            watch()
        return [process.poll() for process in started]
    finally:
        _end(started, grace)


def gpus():
    """This machine's GPUs, named as in CUDA_VISIBLE_DEVICES."""
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",") if visible else [str(index) for index in range(max(1, torch.cuda.device_count()))]


def in_words(status, limit):
    """An exit status in words."""
    if status is None:
        return f"killed after {limit:.0f} s, its limit"
    return f"exit status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"


def replace(path, content):
    """Write the file atomically: no reader sees half of it, and a kill leaves the old file."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(partial, path)


def _start(job):
    with open(job.log, "w") as log:
        return subprocess.Popen(
            job.command,
            cwd=ROOT,
            env=os.environ | job.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=os.setpgrp,  # not a new session, so that ending this session ends it too
        )


def _end(started, grace):
    """End them and all that they started (compilers, test workers)."""
    running = [process for process in started if process.poll() is None]
    for process in running:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + grace
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0, deadline - time.monotonic()))
    for process in started:
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
