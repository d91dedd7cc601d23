"""Programs that compile kernels for absent GPUs, in one process for all of a worker's tests.

Here the kernels are decorated for Triton's interpreter, there for a GPU; and importing torch and Triton takes longer than most
of the compilations.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

SERVER = """
import contextlib, io, json, sys, traceback
from perf import offline
answers = sys.stdout
for line in sys.stdin:
    program, arguments = json.loads(line)
    sys.argv = ["-c", *arguments]
    printed, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed):
            exec(program, {"__name__": "__main__"})
    except BaseException:
        error = traceback.format_exc()
    print(json.dumps([printed.getvalue(), error]), file=answers, flush=True)
"""


@functools.cache
def _server():
    """It ends with this process, whose end closes its input."""
    environment = {**os.environ, "TRITONKERNELS_BACKEND": "gpu", "TRITON_INTERPRET": "0"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", SERVER], env=environment, cwd=Path(__file__).parents[1], **pipes)


def printed(program, *arguments):
    """What a program prints, given sys.argv[1:]."""
    server = _server()
    server.stdin.write(json.dumps([program, arguments]) + "\n")
    server.stdin.flush()
    out, error = json.loads(server.stdout.readline())
    assert error is None, error[-3000:]
    return out


COMMAND = """
import contextlib, io, json, sys
from perf.__main__ import main
said, complained = io.StringIO(), io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
    try:
        status = main(sys.argv[1:])
    except SystemExit as end:
        status = end.code
print(json.dumps([status, said.getvalue(), complained.getvalue()]))
"""


def command(*arguments):
    """A run of `python -m perf ARGUMENTS`: returncode, stdout and stderr."""
    return subprocess.CompletedProcess(arguments, *json.loads(printed(COMMAND, *arguments)))
