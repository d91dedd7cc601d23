"""Which cases of a test are in `make test`."""

import itertools
import json
import types

import pytest

from tests import core, covering
from tests.covering import alone, axes

SIZES, TYPES, LAYOUTS = (1, 2, 3), ("half", "float"), ("rows", ["columns"])  # a list is no key


@pytest.fixture
def cases(monkeypatch):
    """cases(names, rows, *marks): items of a test with these parameters, none of them dear or the first to notice a mutant."""
    monkeypatch.setattr(covering, "known_killers", frozenset)
    monkeypatch.setattr(covering, "dear", dict)

    def made(names, rows, *marks):
        parametrized = [pytest.mark.parametrize(part, []).mark for part in names]
        own = [mark.mark for mark in marks]
        names = [name for part in names for name in part.split(", ")]
        return [_case(number, dict(zip(names, row)), [*parametrized, *own]) for number, row in enumerate(rows)]

    return made


def _case(number, parameters, marks):
    case = types.SimpleNamespace(nodeid=f"test_x.py::test_x[{number}]", callspec=types.SimpleNamespace(params=parameters))
    case.iter_markers = lambda name: (mark for mark in marks if mark.name == name)
    case.get_closest_marker = lambda name: next(case.iter_markers(name), None)
    return Hashed(case)


class Hashed:
    """A namespace that is a key."""

    def __init__(self, namespace):
        vars(self).update(vars(namespace))


def kept(items):
    left = covering.left_out(items)
    return [tuple(map(str, item.callspec.params.values())) for item in items if item not in left]


def test_every_pair_of_values_meets(cases):
    rows = list(itertools.product(SIZES, TYPES, LAYOUTS))
    remaining = kept(cases(["size", "dtype", "layout"], rows))
    assert len(remaining) < len(rows)
    for i, j in itertools.combinations(range(3), 2):
        assert {(row[i], row[j]) for row in remaining} == {(str(row[i]), str(row[j])) for row in rows}


def test_parameters_of_one_parametrization_stay_together_unless_a_mark_divides_them(cases):
    rows = list(itertools.product(SIZES, TYPES, LAYOUTS))
    assert len(kept(cases(["size, dtype", "layout"], rows))) == len(rows)
    assert len(kept(cases(["size, dtype", "layout"], rows, axes("size", "dtype")))) < len(rows)


def test_what_need_not_meet_occurs_in_turn(cases):
    rows = list(itertools.product(SIZES, TYPES))
    remaining = kept(cases(["size", "dtype"], rows, alone("dtype")))
    assert len(remaining) == len(SIZES) and len({dtype for _, dtype in remaining}) == len(TYPES)


def test_two_axes_one_axis_and_no_parameters_keep_their_cases(cases):
    for names, rows in ((["size", "dtype"], [*itertools.product(SIZES, TYPES)]), (["size"], [(1,), (2,)]), ([], [()])):
        assert len(kept(cases(names, rows))) == len(rows)


def test_a_case_that_noticed_a_mutant_stays(cases, monkeypatch):
    items = cases(["size", "dtype", "layout"], itertools.product(SIZES, TYPES, LAYOUTS))
    for item in items:
        monkeypatch.setattr(covering, "known_killers", lambda item=item: {item.nodeid})
        assert item not in covering.left_out(items)


def test_of_what_is_dear_the_cheapest_of_a_design_stays_and_what_noticed_a_mutant(cases, monkeypatch):
    rows = list(itertools.product(("naive", "tiled"), SIZES))
    items = cases(["design", "size"], rows)
    names = [item.nodeid for item in items]
    monkeypatch.setattr(covering, "dear", lambda: dict(zip(names, (3.0, 1.0, 2.0))))
    assert kept(items) == [("naive", "2"), *(("tiled", str(size)) for size in SIZES)]
    monkeypatch.setattr(covering, "known_killers", lambda: {names[0]})
    assert kept(items) == [("naive", "1"), *(("tiled", str(size)) for size in SIZES)]


def test_what_all_cases_of_a_test_share_makes_none_of_them_dear(tmp_path):
    tests, found = tmp_path / "tests.xml", tmp_path / "dear.json"
    found.write_text(json.dumps({"tests/test_x.py::test_a[0]": 1.0, "tests/test_x.py::test_gone": 1.0}))
    times = {"test_a": (0.1, 0.3, 0.4), "test_b": (9.0, 0.3, 0.4), "test_c": (0.01, 0.02, 0.03)}
    rows = [
        f'<testcase classname="tests.test_x" name="{name}[{i}]" time="{t}"/>'
        for name in times
        for i, t in enumerate(times[name])
    ]
    tests.write_text(f"<suite>{''.join(rows)}</suite>")
    core.write_dear([tests], found)
    expected = {"test_a[1]": 0.3, "test_a[2]": 0.4, "test_b[1]": 0.3, "test_b[2]": 0.4, "test_gone": 1.0}
    assert json.loads(found.read_text()) == {f"tests/test_x.py::{name}": time for name, time in expected.items()}
