"""A build's commands, run in a child process that a timeout, an interrupt or the end of its parent ends with its compilers."""

import json
import os
import signal
import subprocess
import sys
import time

from tritonkernels.errors import BuildError

from . import toolchain

# SIGTERM, also sent when the parent process dies, goes to all of the child's process group: to compilers and what they run.
END = """
import contextlib, ctypes, json, os, signal, subprocess, sys
def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(1)
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
job = json.load(sys.stdin)
signal.signal(signal.SIGTERM, end)
"""
PROGRAM = END + "sys.exit(any(subprocess.call(command) for command in job))"
_GRACE = 10  # seconds to end after SIGTERM
_REMEDY = (
    "cuda_reference.doctor() says which tools were used. The environment variable CXX names another C++ compiler, CUDA_HOME "
    "the folder of another CUDA toolkit. If other tools fail, too, report this with what doctor() says."
)

_children: set = set()  # of the builds under way
_stopped = 0.0  # when stop() was called last


def run(recipe, commands, folder, timeout):
    """Run the commands one after the other in the folder; BuildError, with what they print, if one fails."""
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=toolchain.clean_environment() | {"TMPDIR": str(folder)},  # nvcc leaves files behind if it is ended
        text=True,
        start_new_session=True,  # and a process group, for `end`
    )
    _children.add(child)
    try:
        if recipe.asked < _stopped:  # it has waited for another's build, which was ended
            raise BuildError(f"building {recipe.name} was interrupted.")
        output, _ = child.communicate(json.dumps(commands), timeout)
    except subprocess.TimeoutExpired:
        raise BuildError(f"building {recipe.name} took more than {timeout:g} s: raise TRITONKERNELS_BUILD_TIMEOUT.") from None
    finally:
        _children.discard(child)
        if child.poll() is None:  # timed out or interrupted
            _end(child)
    if child.returncode != 0:
        raise BuildError(f"building {recipe.name} failed:\n{toolchain.tail(output)}\n{_REMEDY}")


def stop() -> None:
    """End the builds asked for until now by all threads of this process, which get BuildError: for a user who interrupts it."""
    global _stopped
    _stopped = time.monotonic()
    for child in tuple(_children):
        child.terminate()


def _end(child):
    child.terminate()
    try:
        child.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
