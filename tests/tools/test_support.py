"""The versions in docs/running.md are those that the smoke tests ran on, and nox runs them on what pyproject.toml allows."""

import importlib.util
import json
import re
import sys
import types
from pathlib import Path
from unittest import mock

import pytest

import tritonkernels
from perf.render import support
from tests import children
from tests.harness import thorough
from tests.support import kept

ROOT = Path(__file__).parents[2]


@pytest.fixture
def noxfile(monkeypatch):
    """The module; nox itself, which need not be installed, is a stand-in whose decorators leave functions as they are."""
    unchanged = mock.Mock(return_value=lambda function: function)
    monkeypatch.setitem(sys.modules, "nox", types.SimpleNamespace(session=unchanged, parametrize=unchanged, param=mock.Mock()))
    sys.modules["nox"].options = mock.Mock()
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(version):
    return [int(part) for part in version.split(".")]


def test_a_session_runs_the_smoke_tests_with_the_oldest_and_the_newest_numpy(noxfile):
    session = mock.Mock()
    noxfile.smoke(session, "3.6.0")
    installed = [call.args for call in session.install.call_args_list]
    assert installed[0] == ("torch==2.11.0", "triton==3.6.0")
    assert installed[-2:] == [("numpy==1.26.4",), ("numpy==2.3.5",)], "its interpreter does not work with numpy 2.4"
    assert [call.args for call in session.run.call_args_list] == 2 * [("python", "-m", "tests.support")]


def test_an_outcome_is_of_one_minor_version_of_python(tmp_path):
    run = {"triton": "3.7.1", "torch": "2.13.0", "numpy": "2.4.6", "passed": 1, "failed": 0}
    for python in ("3.13.0", "3.11.7", "3.13.1"):
        kept(run | {"python": python}, tmp_path / "support.json")
    assert [run["python"] for run in json.loads((tmp_path / "support.json").read_text())] == ["3.11.7", "3.13.1"]


def test_the_oldest_versions_are_those_of_pyproject(noxfile):
    dependencies = re.search(r"^dependencies = .*", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[0]
    least = {name: numbers(version) for name, version in re.findall(r'"(\w+)>=([\d.]+)"', dependencies)}
    tritons, torches = map(numbers, noxfile.TORCH), map(numbers, noxfile.TORCH.values())
    oldest = {"triton": min(tritons), "torch": min(torches), "numpy": numbers(noxfile.OLDEST)}
    assert {name: version[:2] for name, version in oldest.items()} == least


def test_the_record_is_of_the_versions_that_nox_runs(noxfile):
    runs = json.loads(support.RECORD.read_text())
    assert runs and {(run["triton"], run["torch"].partition("+")[0]) for run in runs} <= noxfile.TORCH.items()


def test_the_pythons_of_the_classifiers_are_those_that_tests_ran_on(noxfile):
    """The smoke tests, or the gate; nox tries all that may install the package."""
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    gates = (json.loads(path.read_text()) for path in ROOT.glob("perf/results/*/gate.json"))
    ran = {run["python"].rpartition(".")[0] for run in (*json.loads(support.RECORD.read_text()), *gates) if run["python"]}
    assert set(named) == ran <= set(noxfile.PYTHONS)


def test_the_version_is_the_changelog_s():
    """Sources with unreleased changes are a later version's; what is cited is the last release."""
    unreleased, version, date = re.search(
        r"^# Changelog\n\n(?:## Unreleased\n\n(.+?)\n\n)?## (\S+) \((\S+)\)\n", (ROOT / "CHANGELOG.md").read_text(), re.DOTALL
    ).groups()
    own, later = re.fullmatch(r"(\d+\.\d+\.\d+)(\.dev\d+)?", tritonkernels.__version__).groups()
    assert (numbers(own) > numbers(version) and later) if unreleased else (own, later) == (version, None)
    cited = dict(re.findall(r"^([\w-]+): (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert (cited["version"], cited["date-released"]) == (version, date)


def run_on(record, *tests):
    """The status of tests.support's main, which runs pytest in its process."""
    program = (
        f"import sys; from pathlib import Path; from tests.support import main; sys.exit(main({tests}, Path({str(record)!r})))"
    )
    return children.run("-c", program).returncode


@thorough
def test_outcomes_are_counted_and_replaced(tmp_path):
    record, tests = tmp_path / "support.json", tmp_path / "test_two.py"
    tests.write_text("def test_one(): pass\ndef test_two(): assert False\n")
    broken = tmp_path / "test_broken.py"
    broken.write_text("import no_such_module\n")
    assert run_on(record, str(tests), str(broken), "--continue-on-collection-errors") == 1
    (run,) = json.loads(record.read_text())
    assert (run["passed"], run["failed"]) == (1, 2) and any("test_two" in name for name in run["failures"])
    assert " 2 of 3 failed " in support.markdown("nox", record)
    tests.write_text("def test_one(): pass\n")
    assert run_on(record, str(tests)) == 0
    (run,) = json.loads(record.read_text())
    assert (run["passed"], run["failed"], run["failures"]) == (1, 0, []), "the run before was of the same versions"


def test_the_table_has_a_row_for_each_triton_and_its_numpys(tmp_path):
    run = {"torch": "2.13.0", "python": "3.11.7", "commit": "0" * 12, "date": "2026-11-23", "passed": 5, "failed": 0}
    versions = (("3.10.0", "2.4.6"), ("3.7.1", "2.4.6"), ("3.7.1", "1.26.4"))
    for triton, numpy in versions:
        kept(run | {"triton": triton, "numpy": numpy}, tmp_path / "support.json")
    rows = support.markdown("nox", tmp_path / "support.json").splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[:3] for row in cells] == [["3.7.1", "2.13.0", "1.26.4, 2.4.6"], ["3.10.0", "2.13.0", "2.4.6"]]
    assert cells[0][4] == "5 passed, 5 passed"
