"""Builds for tests of builders.run: what a task does in a builder, and which processes there were.

A task is (folder, what). Every builder, the process that forked it and what it has started note their numbers in the folder.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

FOREVER = 300  # seconds: longer than a test may take


def prepare():
    return build


def fail_to_prepare():
    raise OSError("no memory")


def build(task):
    folder, what = task
    for process in (os.getpid(), os.getppid()):
        note(folder, process)
    print("builders may print")
    globals()[what](folder)


def note(folder, process):
    (folder / str(process)).touch()


def noted(folder):
    return [int(file.name) for file in folder.iterdir() if file.name.isdigit()]


def left(folder):
    """The noted processes that still run, a moment after they were killed."""
    until = time.monotonic() + 5
    while (running := [process for process in noted(folder) if not is_gone(process)]) and time.monotonic() < until:
        time.sleep(0.01)
    return running


def is_gone(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def succeed(folder):
    pass


def fail(folder):
    raise ZeroDivisionError("of this\nbuild")


def crash(folder):
    os.kill(os.getpid(), signal.SIGKILL)


def hang(folder):
    """In code that heeds no signal, with a child as Triton's ptxas."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(folder, subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOREVER})"]).pid)
    (folder / "hangs").touch()
    time.sleep(FOREVER)


def wait_for_hang(folder):
    """Succeed once another builder hangs."""
    while not (folder / "hangs").exists():
        time.sleep(0.01)


def interrupt(folder):
    """As Ctrl-C does to the process that called."""
    wait_for_hang(folder)
    os.kill(int((folder / "caller").read_text()), signal.SIGINT)
    time.sleep(FOREVER)
