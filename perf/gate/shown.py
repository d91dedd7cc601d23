"""What gate.json says of the sources at hand: lines of README.md and docs/running.md, a column of its versions."""

import json
import re

from ..measure import measured
from . import plan, sources

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
    """A list of the last pass and of what holds now with each Triton on each GPU; `command` is what makes it."""
    lines = [f"- {line}" for record in _records(results) for line in _of_record(record)]
    return "\n".join(lines) or "The gate has not been run yet."


def in_short(*command, results=None):
    """A line for each GPU: with each Triton the last pass, and what holds now."""
    lines = {}
    for record in _records(results):
        lines.setdefault(record["gpu"], []).append(f"Triton {record['triton']}: {_in_short(record)}")
    return "\n".join(f"- {gpu}, {'. '.join(own)}." for gpu, own in lines.items()) or "The gate has not been run yet."


def outcome(triton, results=None):
    """The gate with that Triton in a table's cell: GPU, counts, day, commit."""
    cells = [f"{_gpu(record)}: {_in_short(record)}" for record in _records(results) if record["triton"] == triton]
    return "; ".join(cells) or "not run"


def _records(results):
    return [record for folder in measured.gpus(results or RESULTS) for record in read(folder / "gate.json").values()]


def _of_record(gate):
    passed, name, state = gate["last_passed"], f"{gate['gpu']}, Triton {gate['triton']}", State(gate)
    if passed is None:
        yield f"{name}: no commit has passed the gate yet."
    else:
        counts = _by_check({step: counts.get("passed", 0) for step, counts in passed["counts"].items()})
        skipped = "".join(f"; {step} was skipped: {why}" for step, why in passed["skipped"].items())
        what = f"the gate without {passed['left_out']}" if passed.get("left_out") else "the whole gate"
        yield f"{name}: commit `{passed['commit']}` passed {what} on {passed['date'][:10]} ({counts}{skipped})."
        if len(commits := passed.get("commits", ())) > 1:
            named = ", ".join(f"`{commit}`" for commit in commits)
            yield f"{name}: its steps ran at {named}; what a step depends on was the same at `{passed['commit']}`."
    yield f"{name}: {state.in_words()}."


class State:
    """Which of the steps that the gate has today hold for the sources at hand, by a record."""

    def __init__(self, gate):
        self.left_out = gate.get("left_out") or ""
        package, quick = "tritonkernels" if "cuda_reference" in self.left_out else None, "cases" in self.left_out
        of = {name: gate["steps"].get(name) for name in plan.names(package, quick)}
        self.count = len(of)
        now = {name: step for name, step in of.items() if step and _is_of_now(name, step, self.left_out)}
        self.done = {name: step for name, step in now.items() if step["status"] in ("passed", "skipped")}
        self.cut = {name: step for name, step in now.items() if _was_cut_off(step)}
        self.red = {name: step for name, step in now.items() if name not in self.done and name not in self.cut}
        self.open = [name for name in of if name not in now]
        self.commits = sorted({step["commit"] for step in self.done.values() if step["status"] == "passed"})

    @property
    def is_green(self):
        return len(self.done) == self.count

    @property
    def passes(self):
        return sum(step["counts"].get("passed", 0) for step in self.done.values())

    def in_words(self):
        left_out = f", without {self.left_out}" if self.left_out else ""
        if self.is_green:
            return f"all {self.count} steps hold for the sources at hand{left_out}"
        of = f", which ran at {', '.join(f'`{commit}`' for commit in self.commits)}" if self.commits else ""
        words = [f"{len(self.done)} of {self.count} steps hold for the sources at hand{left_out}{of}"]
        if self.red:
            words.append(f"failed: {', '.join(self.red)}")
        if self.cut:
            ends = (
                f"{name} after {step['counts'].get('passed', 0):,} passed and none failed" for name, step in self.cut.items()
            )
            words.append(f"cut off: {', '.join(ends)}")
        if self.open:
            words.append(
                f"to be run, or run again since what they depend on has changed: {_by_check(dict.fromkeys(self.open, 1))}"
            )
        return "; ".join(words)


def _by_check(numbers):
    """The sum of each check's steps: "6,128 in calls"."""
    sums = {}
    for step, number in numbers.items():
        check = plan.parts(step)[0]
        sums[check] = sums.get(check, 0) + number
    return ", ".join(f"{number:,} in {check}" for check, number in sums.items() if number)


def _in_short(gate):
    passed, state, words = gate["last_passed"], State(gate), []
    if passed:
        left_out = f" without {passed['left_out']}" if passed.get("left_out") else ""
        count = sum(counts.get("passed", 0) for counts in passed["counts"].values())
        words = [f"{count:,} passed{left_out}, {passed['date'][:10]}, `{passed['commit'][:12]}`"]
    if not state.is_green:
        failures = sum(len(step["failures"]) or 1 for step in state.red.values())
        cut = f", {len(state.cut)} cut off" * bool(state.cut)
        counts = f"{state.passes:,} passed, {failures:,} failed{cut}"
        words.append(f"{'now ' * bool(words)}{len(state.done)} of {state.count} steps hold for these sources ({counts})")
    return "; ".join(words)


def _gpu(gate):
    return gate["gpu"].removeprefix("NVIDIA ").partition(" ")[0]


def _is_of_now(name, step, left_out):
    """Whether it ran all that is asked of it, and what it depends on is unchanged since."""
    if step["status"] == "skipped":
        return True
    return step.get("digest") == sources.digest(name, step.get("used", ())) and all(
        part in left_out for part in step["left_out"]
    )


def _was_cut_off(step):
    return step["status"] == "failed" and step.get("note", "").startswith((CUT_OFF, ENDED)) and not step["failures"]
