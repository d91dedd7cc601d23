"""python -m tests.support: the smoke tests on this Python's Triton, torch and numpy; the outcome goes into docs/support.json.

They are the least that shows whether the versions work together: bad and traced calls, the interpreter with a user's own
kernels, results of every design, and every Triton design compiled for sm_90. The table in docs/running.md is made from the
outcomes. Exits with pytest's status.
"""

import datetime
import importlib.metadata
import json
import platform
import sys

import pytest

from perf import ROOT
from perf.measure.environment import revision
from perf.render.support import RECORD

DESIGNS = "tests/designs/test_designs.py::test_"
SMOKE = (
    "tests/operations/test_errors.py",
    "tests/tools/test_interpreter.py",
    "tests/tools/test_users_triton.py",
    "tests/torch_ops/test_tracing.py",
    f"{DESIGNS}gemm_never_reads_c_when_beta_is_zero",
    f"{DESIGNS}gemv_never_reads_y_when_beta_is_zero",
    f"{DESIGNS}conv2d_returns_the_memory_format_of_its_input",
    f"{DESIGNS}matmul_shapes",
    "tests/designs/test_compile.py::test_every_triton_config_compiles_within_limits",
)
VERSIONS = ("triton", "torch", "numpy")  # a record has one outcome of these and a minor version of Python


class Outcome:
    """A plugin of pytest that counts tests, and files that cannot be imported as failed ones."""

    def __init__(self):
        self.counts = {"passed": 0, "failed": 0}
        self.failed = []

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._fail(report)
        elif report.passed and report.when == "call":
            self.counts["passed"] += 1

    def pytest_collectreport(self, report):
        if report.failed:
            self._fail(report)

    def _fail(self, report):
        self.counts["failed"] += 1
        self.failed.append(report.nodeid)


def main(tests=SMOKE, record=RECORD):
    outcome = Outcome()
    status = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *tests], plugins=[outcome])
    versions = {package: importlib.metadata.version(package) for package in VERSIONS}
    row = versions | {"python": platform.python_version(), "commit": revision(), "date": datetime.date.today().isoformat()}
    kept(row | outcome.counts | {"failures": outcome.failed}, record)
    return status


def kept(row, record):
    """Add the outcome to the record, in place of an earlier one of the same versions."""
    rows = json.loads(record.read_text()) if record.exists() else []
    rows = [other for other in rows if _versions(other) != _versions(row)] + [row]
    rows.sort(key=_versions)
    record.write_text(json.dumps(rows, indent=1) + "\n")


def _versions(row):
    triton, torch, numpy = (_number(row[name]) for name in VERSIONS)
    return triton, torch, _number(row["python"])[:2], numpy


def _number(version):
    return [int(part) for part in version.partition("+")[0].split(".")]


if __name__ == "__main__":
    sys.exit(main())
