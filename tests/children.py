"""Programs in processes of their own that have torch from the start: forked from one that imported it, which takes seconds.

Nothing is called at their exit, and what torch reads from the environment on import was read before theirs was set.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).parents[1]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch"])


def start(*command, env=os.environ, cwd=ROOT, files=(os.devnull, os.devnull)):
    """The process of Python with these arguments: -c PROGRAM, -m MODULE or FILE, and more for it. It writes to the files."""
    sys.audit("subprocess.Popen", sys.executable, command, str(cwd), env)  # another Python, for those who listen
    child = FORKS.Process(target=_become, args=(tuple(map(str, command)), dict(env), cwd, *files))
    child.start()
    return child


def run(*command, env=os.environ, cwd=ROOT, timeout=280):
    """As subprocess.run of Python with these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("stdout", "stderr")]
        child = start(*command, env=env, cwd=cwd, files=files)
        child.join(timeout)
        if child.is_alive():
            child.kill()
            child.join()
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, child.exitcode, *(file.read_text() for file in files))


def _become(command, environment, folder, *files):
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path.insert(0, str(ROOT))
    kind, *sys.argv = command
    if kind == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        program, sys.argv[0] = sys.argv[0], kind
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.argv.insert(0, kind)
        runpy.run_path(kind, run_name="__main__")
