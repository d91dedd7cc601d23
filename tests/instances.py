"""python -m tests.instances [path ...]: tests/instances.json, the instances of the emulation that the tests launch, made again.

`make test` builds them in bulk (tests/bulk.py). Here all tests run, or those of the paths, whose instances are added to the
list. Nothing is compiled, launched or started, and no assertion ends a test early: each goes through its calls in a moment, and
those of its assertions. PROGRAMS, which tests start, run here as well. What only a real run launches is built on its own there,
and counted at the run's end.
"""

import ast
import collections
import contextlib
import importlib.machinery
import io
import json
import os
import runpy
import subprocess
import sys
import types

import pytest

from cuda_reference import build, bulk, trace
from tests import children
from tests.bulk import LISTED
from tritonkernels.errors import BuildError
from tritonkernels.library import Library

TESTS = LISTED.parent
PROGRAMS = ("tests.memory.child", "tests.concurrency.calls", "tests.concurrency.together")  # that launch kernels
ASSERTED = "try: asserted\nexcept Exception: pass"
NO_PARAMETERS = types.SimpleNamespace(params={})


class Recorder:
    """A plugin that records what tests would launch."""

    def __init__(self):
        self.found = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self):  # pytest-xdist has started its workers by now
        from tritonkernels.launch import TritonLaunch

        bulk.load = self.load
        trace._trace = lambda *_: trace.Trace((), ())
        TritonLaunch.run = lambda _: None
        Library.judge = lambda *_, **__: types.SimpleNamespace(ok=True, error=0.0, bound=1.0)
        build._compile = subprocess.Popen = children.start = _refuse
        children.run = _run

    def load(self, header, part, whole, backend):
        if not os.path.isabs(header):  # a test's own
            self.found |= {(backend, header, expression) for expression in part}
        return collections.defaultdict(lambda: lambda *_: None)

    def pytest_collection_modifyitems(self, items):
        """Programs of the other package launch nothing here."""
        items[:] = [item for item in items if _package(item) != "tritonkernels"]

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["instances"] = sorted(self.found)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.found |= set(map(tuple, getattr(node, "workeroutput", {}).get("instances", ())))


class Evaluated(ast.NodeTransformer):
    """Assertions that never fail: what they assert is evaluated."""

    def visit_Assert(self, node):
        (asserted,) = ast.parse(ASSERTED).body
        asserted.body[0].value = node.test
        return ast.fix_missing_locations(ast.copy_location(asserted, node))


def _code_without_assertions(loader, name, get_code=importlib.machinery.SourceFileLoader.get_code):
    """The code of a module, if it is the tests' without their assertions."""
    path = loader.get_filename(name)
    if not path.startswith(str(TESTS)):
        return get_code(loader, name)
    return compile(Evaluated().visit(ast.parse(loader.get_data(path))), path, "exec", dont_inherit=True)


def _package(item):
    parameters = getattr(item, "callspec", NO_PARAMETERS).params.values()
    return next((value.package for value in parameters if isinstance(value, Library)), None)


def _run(kind, *command, **_):
    """children.run of one of PROGRAMS, in this process."""
    if kind != "-m" or command[0] not in PROGRAMS:
        _refuse()
    status, said = 0, io.StringIO()
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(said):
        patched.setattr(sys, "argv", [*map(str, command)])
        try:
            runpy.run_module(command[0], run_name="__main__")
        except SystemExit as end:
            status = end.code
    return subprocess.CompletedProcess(command, status, said.getvalue(), "")


def _refuse(*_, **__):
    raise BuildError("nothing is built or started while instances are recorded.")


def pytest_configure(config):
    importlib.machinery.SourceFileLoader.get_code = _code_without_assertions
    config.pluginmanager.register(Recorder(), "recorder")


def pytest_unconfigure(config):
    found = config.pluginmanager.get_plugin("recorder").found
    if not hasattr(config, "workerinput"):
        if config.args_source is config.ArgsSource.ARGS and LISTED.exists():
            known = json.loads(LISTED.read_text())
            found |= {(backend, header, e) for backend in known for header in known[backend] for e in known[backend][header]}
        lists = {}
        for backend, header, expression in sorted(found):
            lists.setdefault(backend, {}).setdefault(header, []).append(expression)
        LISTED.write_text(json.dumps(lists, indent=1) + "\n")
        print(f"{len(found)} instances")


def main():
    command = [sys.executable, "-m", "pytest", "-q", "--assert=plain", "--tb=no", "-rN", "-p", "tests.instances"]
    workers = ["-n", "auto", "--dist", "worksteal", "-p", "no:cacheprovider"]
    return subprocess.call([*command, *workers, *sys.argv[1:]], cwd=LISTED.parents[1], env=os.environ | {"PYTHONOPTIMIZE": "1"})


if __name__ == "__main__":
    sys.exit(main())
