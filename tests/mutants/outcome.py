"""outcome.json: which test noticed each mutant, with the commit and the day of the last run that added to it."""

import datetime
import json
import re
import subprocess

from filelock import FileLock

from tests.mutants.mutant import ROOT

FILE = ROOT / "tests/mutants/outcome.json"


def read(file=FILE):
    """{mutant's name: its outcome}."""
    return json.loads(file.read_text())["mutants"] if file.exists() else {}


def killer(outcome):
    """The test that noticed the mutant; None if none did. `by` also says how, where the process died or hung."""
    return outcome.get("by") and re.sub(r" \((hangs|SIG\w+)\)$", "", outcome["by"])


def killers(outcomes):
    """The tests that were the first to notice a mutant."""
    return {killer(outcome) for outcome in outcomes.values()} - {None}


def gone(outcomes, collected):
    """{mutant's name: the test that noticed it} where that test is no more; `collected` are the cases of some files, whole."""
    files = {case.partition("::")[0] for case in collected}
    missing = {}
    for name, outcome in outcomes.items():
        file = (by := killer(outcome) or "").partition("::")[0]
        known = files if by == file else collected  # a file that cannot be imported has noticed it, too
        if by not in known and (file in files or not (ROOT / file).is_file()):
            missing[name] = by
    return missing


def is_known(mutant, outcomes):
    """Whether the current version of the mutant was noticed."""
    outcome = outcomes.get(mutant.name, {})
    return outcome.get("outcome") == "killed" and outcome["digest"] == mutant.digest()


def add(mutant, by, seconds, names, file=FILE):
    """Writes the mutant's outcome, and drops outcomes of mutants not in `names`. Other shards may write concurrently."""
    with FileLock(file.with_suffix(".lock")):
        outcomes = {name: outcome for name, outcome in read(file).items() if name in names}
        outcomes[mutant.name] = {
            "outcome": "killed" if by else "survived",
            "by": by,
            "seconds": round(seconds),
            "digest": mutant.digest(),
        }
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        record = {"commit": head, "date": str(datetime.date.today()), "mutants": dict(sorted(outcomes.items()))}
        file.write_text(json.dumps(record, indent=1) + "\n")
