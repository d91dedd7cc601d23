"""The cases of `make test-core`: those that were the first to notice a mutant, and of every other test function the cheapest,
but for functions of which even that takes long. And the dear ones, of which `make test` has few (covering.py).

    .venv/bin/python -m pytest -q -n auto --junitxml=build/tests.xml
    .venv/bin/python -m tests.core build/tests.xml

writes to cheapest.json which case that is, where it is much cheaper than the first, or null for a function left out; and to
dear.json what a dear case takes. Several files may be given, of parts of the tests; what is in none of them stays as it was.
"""

import json
import statistics
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.mutants import outcome

CHEAPEST, DEAR = (Path(__file__).with_name(f"{name}.json") for name in ("cheapest", "dear"))
LEAST = 0.5  # seconds: a case that spares less is not worth a line of the file
MOST = 2  # seconds
PRICE = 0.1  # seconds: what takes as long is dear
OUTLIER = 10  # times the median of a test's cases: that is what they share, and one pays for


def chosen(items):
    """The items of `make test-core` among those of `make test`. A function without a known case gives its first."""
    killers, cheapest = outcome.killers(outcome.read()), json.loads(CHEAPEST.read_text())
    functions = {}
    for item in items:
        functions.setdefault(function_of(item.nodeid), []).append(item)
    kept = set()
    for name, cases in functions.items():
        names = [item.nodeid for item in cases]
        known = cheapest.get(name, names[0])
        kept.update(killers.intersection(names) or {known}.intersection(names) or (names[:1] if known else ()))
    return [item for item in items if item.nodeid in kept]


def function_of(nodeid):
    return nodeid.partition("[")[0]


def seconds(files):
    """{test function: {its cases that passed: seconds}} of pytest's XML files."""
    found = {}
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            if not len(case):  # neither failed nor skipped
                nodeid = f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}"
                found.setdefault(function_of(nodeid), {})[nodeid] = float(case.get("time"))
    return found


def write(files, to=CHEAPEST):
    known = json.loads(to.read_text()) if to.exists() else {}
    for name, cases in seconds(files).items():
        first, cheapest = next(iter(cases)), min(cases, key=cases.get)
        known.pop(name, None)
        if cases[cheapest] > MOST:
            known[name] = None
        elif cases[first] > cases[cheapest] + LEAST:
            known[name] = cheapest
    to.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def write_dear(files, to=DEAR):
    known = json.loads(to.read_text()) if to.exists() else {}
    for cases in seconds(files).values():
        usual = statistics.median(cases.values())
        for name, time in cases.items():
            known.pop(name, None)
            if PRICE < time < OUTLIER * usual:
                known[name] = round(time, 1)
    to.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


if __name__ == "__main__":
    write(sys.argv[1:])
    write_dear(sys.argv[1:])
