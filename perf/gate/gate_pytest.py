"""A pytest plugin for the gate.

`--outcomes FILE` writes a line of JSON for each test when it ends, so that nothing is lost if the run is killed.
`--family gemm` runs the tests of this family alone, and writes to FILE.used which operations they used; `--family rest` runs
those of none. `--shard I/N` runs the I-th of N parts of the tests, the same ones in every process. `--package tritonkernels`
leaves out the tests that only launch kernels of cuda_reference. After a kernel's fault nothing else can run in its process:
such a pytest-xdist worker ends itself, and a new one replaces it.
"""

import json
import os
import re
import sys
import zlib
from pathlib import Path

from .. import ROOT
from . import plan

TESTS = ROOT / "tests"
OF_FAMILIES = (*plan.ACROSS, "large")  # folders whose tests may be a family's; those of others are of what all share
COMPILES = {"printed", "compiler"}  # names in a test that compiles, whatever it may be, in another process (tests/compiler.py)


def pytest_addoption(parser):
    parser.addoption("--outcomes")
    parser.addoption("--family")
    parser.addoption("--shard", default="1/1")
    parser.addoption("--package")


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(_Worker())
    elif config.getoption("outcomes"):
        config.pluginmanager.register(_Recorder(config.getoption("outcomes")))


def pytest_collection_modifyitems(config, items):
    index, count = map(int, config.getoption("shard").split("/"))
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % count == index - 1]
    if config.getoption("package"):
        items[:] = [item for item in items if not _is_of_cuda_alone(item)]
    if wanted := config.getoption("family"):
        items[:] = [item for item in items if family(item) == wanted]


def pytest_collection_finish(session):
    outcomes = session.config.getoption("outcomes")
    if outcomes and session.config.getoption("family") in plan.FAMILIES:
        _record_uses(Path(outcomes).with_suffix(".used"))


def family(item):
    """The family that the test is of: by its file, by its parameter `op`, or of large operands by its name; else "rest"."""
    folder, *_ = path = item.path.relative_to(TESTS).parts if item.path.is_relative_to(TESTS) else ("",)
    if folder not in OF_FAMILIES or COMPILES & {*item.function.__code__.co_names}:
        return plan.REST
    op = item.callspec.params.get("op") if hasattr(item, "callspec") else None
    named = {*item.originalname.split("_")} & {*plan.OPS} if folder == "large" else {op}
    families = {plan.family_of_file(path) or plan.family(one) for one in named}
    return families.pop() if len(families) == 1 else plan.REST


def _record_uses(path):
    """Write each operation to the file whose problem is made from here on; all of them if another Python is started."""
    written = set()

    def note(*ops):
        if new := {*ops} - written:
            written.update(new)
            with open(path, "a") as file:
                file.write("".join(f"{op}\n" for op in sorted(new)))

    @staticmethod
    def make(cls, *args, **kwargs):
        note(cls.op)
        return object.__new__(cls)

    def hear(event, arguments):
        if event == "subprocess.Popen" and str(arguments[0]) == sys.executable and not _is_a_build(arguments[1]):
            note(*plan.OPS)

    if "tritonkernels.problem" in sys.modules:
        sys.modules["tritonkernels.problem"].Problem.__new__ = make
        sys.addaudithook(hear)
    else:  # nothing here says what the tests will use
        note(*plan.OPS)


def _is_a_build(command):
    """Whether these are the arguments of cuda_reference/child.py, which runs compilers for a kernel of the test's own."""
    child = sys.modules.get("cuda_reference.child")
    return child is not None and child.PROGRAM in command


def _is_of_cuda_alone(item):
    """Whether a test is of CUDA alone, by its file's name or a parameter: the package, its library, or their namesake."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    packages = [getattr(value, "package", getattr(value, "__name__", None)) for value in parameters]
    return item.path.stem.endswith("_cuda") or "cuda_reference" in [*packages, *re.split(r"\W+", item.name)]


class _Recorder:
    def __init__(self, path):
        self._file = open(path, "w", buffering=1)  # noqa: SIM115  open until pytest ends

    def pytest_runtest_logreport(self, report):
        if report.passed and report.when != "call":
            return
        outcome = "error" if report.failed and report.when in ("setup", "teardown") else report.outcome
        self._write(report.nodeid, outcome, report)

    def pytest_collectreport(self, report):
        if report.failed:
            self._write(report.nodeid, "error", report)

    def _write(self, name, outcome, report):
        why = _why(report) if report.failed else ""
        line = {"name": name, "outcome": outcome, "why": why, "seconds": round(getattr(report, "duration", 0.0), 2)}
        self._file.write(json.dumps(line) + "\n")


def _why(report):
    """The line that raised, and the message."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash:
        return f"{crash.path}:{crash.lineno}: {' '.join(crash.message.split())[:500]}"
    return " ".join(str(report.longrepr).split())[-500:]


class _Worker:
    def __init__(self):
        self._failed = False

    def pytest_runtest_logreport(self, report):
        self._failed |= report.failed

    def pytest_runtest_logfinish(self):
        torch = sys.modules.get("torch")
        if self._failed and torch and torch.cuda.is_initialized():
            try:
                torch.cuda.synchronize()
            except RuntimeError:
                os._exit(1)
        self._failed = False
