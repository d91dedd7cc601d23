"""What gate.json says: the lines of README.md and docs/guarantees.md, and a column of the README's table of versions."""

import json
import re

from ..measure import kernels
from . import measured

RESULTS = measured.RESULTS

CUT_OFF = "it was started and did not end"  # the note of a step whose process was killed
ENDED = "SystemExit: ended by "  # how that begins of one that was asked to end


def read(path):
    """{version of Triton: the record of the gate with it}, the oldest version first; none if there is no such file."""
    if not path.exists():
        return {}
    oldest = json.loads(path.read_text())
    newer = oldest.pop("newer", [])
    return {record["triton"]: record for record in (oldest, *newer)}


def text(records):
    """The file of them: the record of the oldest Triton, in which those of newer ones are a list."""
    oldest, *newer = (records[version] for version in sorted(records, key=_number))
    return json.dumps(oldest | {"newer": newer}, indent=1) + "\n"


def _number(version):
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def markdown(*command, results=None):
    """A list of the last pass and of the last run with each Triton on each GPU; `command` is what makes it."""
    lines = [f"- {line}" for record in _records(results) for line in _of_record(record)]
    return "\n".join(lines) or "The gate has not been run yet."


def outcome(triton, results=None):
    """The gate with that Triton in a table's cell: GPU, counts, day, commit."""
    return "; ".join(_in_short(record) for record in _records(results) if record["triton"] == triton) or "not run"


def _records(results):
    return [record for folder in measured.gpus(results or RESULTS) for record in read(folder / "gate.json").values()]


def _of_record(gate):
    passed, steps, name = gate["last_passed"], gate["steps"], f"{gate['gpu']}, Triton {gate['triton']}"
    if passed is None:
        yield f"{name}: no commit has passed the gate yet."
    else:
        passes = {}
        for step, counts in passed["counts"].items():
            kind = step.partition("-")[0]
            passes[kind] = passes.get(kind, 0) + counts.get("passed", 0)
        counts = ", ".join(f"{count:,} in {kind}" for kind, count in passes.items() if count)
        skipped = "".join(f"; {step} was skipped: {why}" for step, why in passed["skipped"].items())
        what = f"the gate without {passed['left_out']}" if passed.get("left_out") else "the whole gate"
        yield f"{name}: commit `{passed['commit']}` passed {what} on {passed['date'][:10]} ({counts}{skipped})."
        changed = [op for op, digest in kernels.digests().items() if passed["kernels"][op] != digest]
        if changed:
            yield f"{name}: what the kernels of {', '.join(changed)} are made of has changed since, and awaits it."
    cut = {step: found["counts"].get("passed", 0) for step, found in steps.items() if _was_cut_off(found)}
    red = [step for step, found in steps.items() if found["status"] == "failed" and step not in cut]
    missing = [step for step in gate.get("planned", ()) if step not in steps]
    what = [f"failed in {', '.join(red)}"] if red else []
    if cut:
        ends = (f"{step} after {count:,} passed and none failed" for step, count in cut.items())
        what.append(f"was cut off: {', '.join(ends)}")
    if what and missing:
        what.append(f"{', '.join(missing)} did not run")
    if what:
        yield f"{name}: the last run, of commit `{gate['commit']}`, {'; '.join(what)}."


def _in_short(gate):
    passed, steps = gate["last_passed"], gate["steps"].values()
    words = []
    if passed:
        left_out = f" without {passed['left_out']}" if passed.get("left_out") else ""
        words = [f"{_passes(passed['counts'].values()):,} passed{left_out}, {passed['date'][:10]}, `{passed['commit'][:12]}`"]
    if not passed or passed["commit"] != gate["commit"]:
        cut = sum(map(_was_cut_off, steps))
        failures = sum(len(step["failures"]) or 1 for step in steps if step["status"] == "failed") - cut
        counts = f"{_passes(step['counts'] for step in steps):,} passed, {failures:,} failed" + f", {cut} cut off" * bool(cut)
        of = f"{len(steps)} of {len(gate['planned'])} steps, `{gate['commit'][:12]}`"
        words.append(f"{'then ' * bool(words)}{counts} in {of}")
    return f"{gate['gpu'].removeprefix('NVIDIA ').partition(' ')[0]}: {'; '.join(words)}"


def _passes(counts):
    return sum(count.get("passed", 0) for count in counts)


def _was_cut_off(step):
    return step["status"] == "failed" and step.get("note", "").startswith((CUT_OFF, ENDED)) and not step["failures"]
