"""Programs run in parallel: their exit statuses, and that no process is left behind."""

import os
import sys
import time
from pathlib import Path

import pytest

from perf import processes
from perf.processes import Job


def job(tmp_path, name, code, **environment):
    return Job((sys.executable, "-c", code), tmp_path / f"{name}.log", environment)


def test_statuses_logs_and_environments(tmp_path):
    prints = "import os, sys; print(os.environ['WORD']); raise SystemExit(int(sys.stdin.read() or 3))"
    jobs = [job(tmp_path, word, prints, WORD=word) for word in ("one", "two")]
    assert processes.run([*jobs, job(tmp_path, "dies", "import os; os.kill(os.getpid(), 11)")], 60) == [3, 3, -11]
    assert [j.log.read_text() for j in jobs] == ["one\n", "two\n"]
    assert [processes.in_words(status, 7) for status in (3, -11, None)] == [
        *("exit status 3", "signal SIGSEGV", "killed after 7 s, its limit")
    ]


def gone(pid):
    """Whether the process ends: it is dead, or a zombie that its parent has not waited for."""
    for _ in range(1000):
        status = Path(f"/proc/{pid}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_processes_left_behind_are_killed(tmp_path):
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    parent = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""
    leaves = job(tmp_path, "leaves", parent)
    assert processes.run([leaves], 60) == [0]
    assert gone(int(leaves.log.read_text()))


def test_a_program_that_ignores_sigterm_is_killed(tmp_path):
    ignores = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stubborn = job(tmp_path, "stubborn", f"{ignores}; print(os.getpid(), flush=True); time.sleep(600)")
    up = []

    def watch():
        if not up and stubborn.log.read_text().endswith("\n"):
            up.append(int(stubborn.log.read_text()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        processes.run([stubborn], 60, watch, grace=0.1)
    assert gone(*up)


def test_a_program_that_is_not_there_ends_the_others(tmp_path):
    sleeps = job(tmp_path, "sleeps", "import time; time.sleep(600)")
    missing = Job(("/nowhere/program",), tmp_path / "missing.log")
    with pytest.raises(FileNotFoundError, match="/nowhere/program"):
        processes.run([sleeps, missing], 60)


def test_a_file_is_replaced_whole(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    before = os.stat(file).st_ino
    processes.replace(file, "new\n")
    assert file.read_text() == "new\n" and os.stat(file).st_ino != before and list(tmp_path.iterdir()) == [file]
