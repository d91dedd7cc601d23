"""summary.md of a campaign: each step's outcome, the records with their ratio to torch, failures, steps not run."""

from ..show import table
from . import records

MARGIN = 40  # how many lines of a failed step's log to show


def write(out, steps, outcomes):
    """Writes the summary from the files in the folder. Steps without an outcome have not run yet."""
    known = {o.name: o for o in outcomes}
    parts = ["# Campaign", table.markdown(["step", "status", "seconds", "note"], [_line(s, known) for s in steps])]
    for step in steps:
        if step.records and (out / step.records).exists():
            rows = records.read_json(out / step.records)
            parts += [f"## {step.name}", _origin(rows), table.markdown(*table.rows(rows))]
            parts += [f"- FAILED: {r.op} {r.case}, {r.implementation} {r.design}: {r.message}" for r in rows if not r.ok]
    for step in steps:
        if step.name in known and known[step.name].status in ("failed", "killed"):
            tail = (out / f"{step.name}.log").read_text(errors="replace").splitlines()[-MARGIN:]
            parts += [f"## The end of {step.name}.log", "\n".join(["```", *tail, "```"])]
    (out / "summary.md").write_text("\n\n".join(parts) + "\n")


def _line(step, known):
    outcome = known.get(step.name)
    return [step.name, outcome.status, f"{outcome.seconds:.0f}", outcome.note] if outcome else [step.name, "to come", "", ""]


def _origin(rows):
    if not rows:
        return "No records."
    e = rows[0].environment
    return f"{e['device']}, torch {e['torch']}, triton {e['triton']}, commit {e['commit']}, {e['date']}: `{e['command']}`"
