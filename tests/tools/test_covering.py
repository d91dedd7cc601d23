"""Which cases of a test are in `make test`."""

import itertools
import types

import pytest

from tests import covering
from tests.harness import alone, axes

SIZES, TYPES, LAYOUTS = (1, 2, 3), ("half", "float"), ("rows", ["columns"])  # a list is no key


@pytest.fixture
def cases(monkeypatch):
    """cases(names, rows, *marks): items of a test with these parameters, of which none has noticed a mutant."""
    monkeypatch.setattr(covering, "known_killers", frozenset)

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
