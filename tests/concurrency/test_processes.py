"""Builds among processes: two concurrent ones compile once, and a killed one does not block others."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import children
from tests.harness import short

HERE = Path(__file__).parent
TINY = f"""{str(HERE.parent / "simt/kernels/tiny.cuh")!r}, ["tiny::fill<1>"]"""
BUILD = f"""
import sys, torch
from cuda_reference.build import load
kernel = load({TINY}, "simt")["tiny::fill<1>"]
out = torch.zeros(4, dtype=torch.int32)
kernel((1, 1, 1), (4, 1, 1), 0, 0, out.data_ptr())
sys.exit(out.tolist() != [1] * 4)
"""
COMPARE = """
import sys
from perf.__main__ import main
sys.exit(main(["compare", "--op", "gemv", "gemm", "--implementation", "cuda"]))
"""
TUNE = f"""
import functools, math, sys, torch
from cuda_reference.build import build_part
from perf.measure import cases, tune
from tritonkernels.choice import builders
prepare = functools.partial(functools.partial, build_part, {TINY}, ["tiny::fill<1>"])
tune.tuner.tune = lambda *_: builders.run(prepare, ["simt"], math.inf, math.inf)  # as it builds; without a GPU it is refused
sys.exit(tune.run([cases.gemv(64, 48)], ["cuda_reference"], torch.device("cpu"), 60.0, True))
"""


@pytest.fixture
def environment(tmp_path):
    """environment(before=""): with a g++ that logs its number and does `before` when it compiles."""

    def made(before=""):
        compiler = tmp_path / f"compiler{len(list(tmp_path.iterdir()))}"
        log = f'case "$*" in *" -c "*) echo $$ >> {tmp_path / "compiled"}; {before} ;; esac'
        compiler.write_text(f'#!/bin/sh\n{log}\nexec g++ "$@"\n')
        compiler.chmod(0o700)
        return os.environ | {"CXX": str(compiler), "TRITONKERNELS_CACHE": str(tmp_path / "cache")}

    return made


@pytest.fixture
def compiled(tmp_path):
    """The process numbers of the compilations so far."""
    log = tmp_path / "compiled"
    return lambda: [int(line) for line in log.read_text().split()] if log.exists() else []


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_after_a_killed_build_two_processes_build_once(environment, compiled, tmp_path):
    killed = children.start("-c", BUILD, env=environment("sleep 300"))
    wait_for(compiled)
    killed.kill()
    killed.join()
    processes = [children.start("-c", BUILD, env=environment()) for _ in range(2)]
    for process in processes:
        process.join(100)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(compiled()) == 3, "the killed one, the emulation and the kernel"
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    wait_for(lambda: is_gone(compiled()[0]))


@short(lambda program, how: program == BUILD or how == signal.SIGKILL)
@pytest.mark.parametrize(
    "program, how, status",
    [
        (BUILD, signal.SIGINT, -signal.SIGINT),
        (COMPARE, signal.SIGINT, 130),
        (TUNE, signal.SIGINT, 130),
        (TUNE, signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_an_interrupted_build_takes_its_compilers_along(environment, compiled, tmp_path, program, how, status):
    heeds = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # which a suite in the background does not
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, cwd=HERE.parents[1], env=environment("sleep 300"), preexec_fn=heeds)
    wait_for(compiled)
    process.send_signal(how)
    assert process.wait(30) == status
    wait_for(lambda: not list((tmp_path / "cache").glob(".building-*")))
    wait_for(lambda: all(map(is_gone, compiled())))
