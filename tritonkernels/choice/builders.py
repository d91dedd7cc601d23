"""Processes that build, and end with the call.

Threads would not do: Triton compiles under the interpreter's lock, and a thread cannot be ended. One child process, which runs
this file, imports what builds need and forks a builder for each core. So it imports no module of this package itself.
"""

import contextlib
import ctypes
import json
import multiprocessing.connection
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time

GRACE = 0.5  # seconds in which processes end themselves and their compilers
DAY = 86400  # seconds: the system's calls cannot wait for any number
PR_SET_PDEATHSIG = 1
NUMBER = 4  # bytes of a task's number on its way to a builder


class NotStartedError(Exception):
    """The child process has ended before any build began."""


def cores():
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run(prepare, tasks, soon, late):
    """{number of a task: None, or why its build failed} of the builds that ended within `soon` seconds; if none had succeeded
    by then, of those up to the first success, within `late` seconds. When it returns or raises, all processes have ended.

    prepare() returns build(task), in the child process; both go there by pickle.
    """
    end = [time.monotonic() + min(seconds, DAY) for seconds in (soon, late)]
    if not tasks:
        return {}
    answers, theirs = os.pipe()
    with open(answers, "rb", buffering=0) as answers, open(theirs, "wb", buffering=0) as theirs:
        with tempfile.TemporaryFile() as job:  # a pipe would block if nobody read it
            pickle.dump(sys.path, job)
            pickle.dump((prepare, tasks, min(cores(), len(tasks)), theirs.fileno()), job)
            job.seek(0)
            # Ctrl-C goes to all of the terminal's session, and is for the caller alone.
            inherited = {"stdin": job, "pass_fds": [theirs.fileno()], "start_new_session": True}
            child = subprocess.Popen([sys.executable, __file__], **inherited)
        theirs.close()
        try:
            return _collect(answers, *end)
        finally:
            _end(child, answers)


def _collect(answers, soon, late):
    rest, found, under_way = b"", {}, set()
    while text := _read(answers, soon if None in found.values() else late):
        *lines, rest = (rest + text).split(b"\n")
        for number, *outcome in map(json.loads, lines):
            if outcome:
                found[number] = outcome[0]
                under_way.discard(number)
            else:
                under_way.add(number)
    has_ended = text == b""
    if has_ended and not (found or under_way):
        raise NotStartedError
    return found | dict.fromkeys(under_way if has_ended else (), "its build ended without an answer")


def _read(answers, until):
    """What is said next; b"" if all who could say something have ended, None if nothing is said until then."""
    ready = multiprocessing.connection.wait([answers], max(0.0, until - time.monotonic()))
    return answers.read(65536) if ready else None


def _end(child, answers):
    """End the child and all builders: first gently, so that they end compilers and remove what these have begun."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, how)
        until = time.monotonic() + GRACE
        while _read(answers, until):
            pass
    child.wait()


def _serve():
    """The child's work: fork the builders and wait for them."""
    signal.signal(signal.SIGTERM, _end_all)
    _end_with_parent()
    sys.path[:] = pickle.load(sys.stdin.buffer)
    prepare, tasks, builders, answers = pickle.load(sys.stdin.buffer)
    build = prepare()
    todo, numbers = os.pipe()
    os.write(numbers, b"".join(number.to_bytes(NUMBER, "little") for number in range(len(tasks))))
    os.close(numbers)
    for _ in range(builders):
        if os.fork() == 0:
            _be_builder(build, tasks, todo, answers)
    _wait()


def _be_builder(build, tasks, todo, answers):
    """Build one task after another, and end."""
    try:
        signal.signal(signal.SIGTERM, _exit)
        _end_with_parent()
        while number := os.read(todo, NUMBER):
            number = int.from_bytes(number, "little")
            _say(answers, number)
            failure = None
            try:
                build(tasks[number])
            except Exception as error:
                failure = in_a_line(error)
            _say(answers, number, failure)
    finally:
        os._exit(0)


def _say(answers, *what):
    os.write(answers, json.dumps(what).encode() + b"\n")  # short enough to be written whole


def _wait():
    """For the end of this process's children."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _exit(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()


def _end_all(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    _wait()
    os._exit(0)


def _end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def in_a_line(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


if __name__ == "__main__":
    _serve()
