"""The table of the versions that the smoke tests run on, from the record of their last runs (tests/support.py),
and of the gate's runs with each Triton."""

import itertools
import json

from .. import ROOT
from ..gate import shown as gate
from ..show import table

RECORD = ROOT / "docs/support.json"
HEADINGS = ("Triton", "torch", "numpy", "Python", "smoke tests", "last run", "on a GPU")


def markdown(command, record=RECORD):
    """A row for each Triton and torch, of the outcomes with each numpy; `command` is what makes the record."""
    rows = json.loads(record.read_text())
    return table.markdown(HEADINGS, [_row(list(runs)) for _, runs in itertools.groupby(rows, _row_of)])


def _row_of(run):
    return [run[name] for name in ("triton", "torch", "python", "date")]


def _row(runs):
    triton, torch, python, date = _row_of(runs[0])
    numpys, outcomes = ", ".join(run["numpy"] for run in runs), ", ".join(map(_outcome, runs))
    return [triton, torch, numpys, python, outcomes, date, gate.outcome(triton)]


def _outcome(run):
    return f"{run['failed']} of {run['passed'] + run['failed']} failed" if run["failed"] else f"{run['passed']} passed"
