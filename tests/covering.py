"""Which cases of a test with several parametrizations `make test` runs: enough for every two values that meet in one of its
cases to meet in one of these, and those that were the first to notice a mutant.

Of those again it leaves out the dear ones (dear.json, made by core.py), as long as of each design and operation one stays.

A parametrization is one axis, however many parameters it has, unless a mark divides it (axes). By another mark an axis
is alone (alone): each of its values occurs, and need not meet every value of another.
"""

import collections
import functools
import itertools
import json

import pytest

from tests.core import DEAR, function_of
from tests.mutants import outcome

SUBJECT = ("library", "package", "op", "design", "name")  # parameters that say what a case is of, if it has them


def axes(*names):
    """A mark: of a test's parameters these are axes of their own, each one or several, as in "dtype, kwargs"."""
    return pytest.mark.axes.with_args(*names)


def alone(*names):
    """A mark: each value of these parameters is in `make test`, and need not meet every value of the others."""
    return pytest.mark.alone.with_args(*names)


def left_out(items):
    """The items that `make test` can do without."""
    tests = collections.defaultdict(list)
    for item in items:  # what a GPU runs covers pairs of its own
        tests[function_of(item.nodeid), item.get_closest_marker("gpu") is not None].append(item)
    left = {item for cases in tests.values() for item in _left_out(cases)}
    return left | {item for cases in tests.values() for item in _dear(case for case in cases if case not in left)}


def _dear(cases):
    """The dear cases, but for any that noticed a mutant, and for the cheapest of a subject of which no other stays."""
    of_subjects = collections.defaultdict(list)
    for case in cases:
        of_subjects[key_of(tuple(parameters(case).get(name) for name in SUBJECT))].append(case)
    for own in of_subjects.values():
        own.sort(key=lambda case: (case.nodeid not in known_killers(), dear().get(case.nodeid, 0)))
        yield from (case for case in own[1:] if case.nodeid in dear() and case.nodeid not in known_killers())


def _left_out(cases):
    found, lone = axes_of(cases[0]), {name for mark in cases[0].iter_markers("alone") for name in mark.args}
    rows = {case: [key_of(tuple(case.callspec.params[name] for name in names)) for names in found] for case in cases}
    changing = [axis for axis in range(len(found)) if len({row[axis] for row in rows.values()}) > 1]
    together = [axis for axis in changing if lone.isdisjoint(found[axis])]
    if len(changing) < 2 or len(changing) == len(together) == 2:
        return ()
    values = {case: {axis: (axis, row[axis]) for axis in changing} for case, row in rows.items()}
    met = {case: _met(values[case], together) for case in cases}
    kept = [case for case in cases if case.nodeid in known_killers()]
    missing = set().union(*met.values()).difference(*(met[case] for case in kept))
    times = collections.Counter(value for case in kept for value in values[case].values())

    def gain(case):
        return len(met[case] & missing), case.nodeid not in dear(), -sum(times[value] for value in values[case].values())

    while missing:
        cases = [case for case in cases if not met[case].isdisjoint(missing)]
        kept.append(max(cases, key=gain))  # of several the first
        missing -= met[kept[-1]]
        times.update(values[kept[-1]].values())
    return set(rows).difference(kept)


def axes_of(item):
    """The names of the parameters of each axis."""
    divided = [[name.strip() for name in names.split(",")] for mark in item.iter_markers("axes") for names in mark.args]
    known = {name for names in divided for name in names}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        if names := [name.strip() for name in names if name.strip() not in known]:
            divided.append(names)
            known.update(names)
    return divided + [[name] for name in parameters(item) if name not in known]  # of fixtures


def parameters(item):
    return item.callspec.params if hasattr(item, "callspec") else {}


def _met(values, together):
    """The values, and pairs of those of axes that are not alone."""
    return {*values.values(), *itertools.combinations((values[axis] for axis in together), 2)}


def key_of(values):
    """The same of equal values of one type; what cannot be a key is one object in all cases."""
    try:
        hash(values)
    except TypeError:
        return tuple(map(id, values))
    return tuple(map(type, values)), values


@functools.cache
def dear():
    """{case: seconds}"""
    return json.loads(DEAR.read_text())


@functools.cache
def known_killers():
    return outcome.killers(outcome.read())
