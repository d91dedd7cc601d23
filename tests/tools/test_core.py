"""`make test-core` has what notices mutants, and a case of every other function."""

import json
import types

import pytest

from tests import core
from tests.mutants import outcome

XML = """<testsuites><testsuite>
<testcase classname="tests.tools.test_it" name="test_sizes[big]" time="9.0" />
<testcase classname="tests.tools.test_it" name="test_sizes[skipped]" time="0.0"><skipped /></testcase>
<testcase classname="tests.tools.test_it" name="test_sizes[small]" time="0.1" />
<testcase classname="tests.tools.test_it" name="test_long" time="3.0" />
<testcase classname="tests.tools.test_it" name="test_alike[1]" time="0.3" />
<testcase classname="tests.tools.test_it" name="test_alike[2]" time="0.2" />
</testsuite></testsuites>"""
FILE = "tests/tools/test_it.py"


def test_the_cheapest_cases_are_those_that_were_measured(tmp_path):
    """Where that spares something; what was not measured stays."""
    (tmp_path / "times.xml").write_text(XML)
    (tmp_path / "cheapest.json").write_text(json.dumps({f"{FILE}::test_alike": "before", "elsewhere": "as it was"}))
    core.write([tmp_path / "times.xml"], tmp_path / "cheapest.json")
    written = json.loads((tmp_path / "cheapest.json").read_text())
    assert written == {
        f"{FILE}::test_sizes": f"{FILE}::test_sizes[small]",
        f"{FILE}::test_long": None,
        "elsewhere": "as it was",
    }


def test_a_function_without_killers_gives_its_cheapest_case_or_its_first_if_that_is_cheap(tmp_path, monkeypatch):
    (tmp_path / "cheapest.json").write_text(json.dumps({"b": "b[2]", "c": "c[gone]", "a": None, "e": None}))
    monkeypatch.setattr(core, "CHEAPEST", tmp_path / "cheapest.json")
    noticed = {"mutant": {"by": "a[2] (SIGSEGV)"}, "another": {"by": "a[3]"}, "survivor": {"by": None}}
    monkeypatch.setattr(outcome, "read", lambda: noticed)
    items = [types.SimpleNamespace(nodeid=f"{name}[{i}]") for name in "abcde" for i in (1, 2, 3)]
    assert [item.nodeid for item in core.chosen(items)] == ["a[2]", "a[3]", "b[2]", "c[1]", "d[1]"]


@pytest.mark.parametrize(
    "by, gone",
    [
        ("tests/core.py::test_it[1] (hangs)", False),  # a file that is there, and not collected here
        ("tests/tools/test_core.py", False),  # which could not be imported
        ("tests/no_such_file.py::test_it", True),
        ("tests/tools/test_core.py::test_it[2]", True),
        ("tests/tools/test_core.py::test_it[1] (SIGABRT)", False),
        (None, True),
    ],
)
def test_a_test_that_is_no_more_has_noticed_nothing(by, gone):
    outcomes = {"mutant": {"by": by}}
    assert bool(outcome.gone(outcomes, {"tests/tools/test_core.py::test_it[1]": True})) == gone
