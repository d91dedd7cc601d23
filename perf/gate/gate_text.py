"""gate.json's outcome as the lines between `<!-- gate: ... -->` and `<!-- /gate -->` in README.md and docs/guarantees.md."""

import json
import re

from .. import HERE, ROOT
from ..measure import kernels

RESULTS = HERE / "results"
FILES = (ROOT / "README.md", ROOT / "docs/guarantees.md")
CUT_OFF = "it was started and did not end"  # the note of a step whose process was killed
ENDED = "SystemExit: ended by "  # how that begins of one that was asked to end
BETWEEN = re.compile(r"(<!-- gate: .*? -->\n).*?(<!-- /gate -->)", re.DOTALL)


def with_lines(text, results=RESULTS):
    return BETWEEN.sub(lambda match: match[1] + lines(results) + match[2], text)


def write():
    for file in FILES:
        file.write_text(with_lines(file.read_text()))


def lines(results=RESULTS):
    paths = sorted(results.glob("*/gate.json"))
    text = "".join(f"- {line}\n" for path in paths for line in _of_gpu(json.loads(path.read_text())))
    return text or "The gate has not been run yet.\n"


def _of_gpu(gate):
    passed, steps = gate["last_passed"], gate["steps"]
    if passed is None:
        yield f"{gate['gpu']}: no commit has passed the whole gate yet."
    else:
        passes = {}
        for name, counts in passed["counts"].items():
            kind = name.partition("-")[0]
            passes[kind] = passes.get(kind, 0) + counts.get("passed", 0)
        counts = ", ".join(f"{count:,} in {kind}" for kind, count in passes.items() if count)
        skipped = "".join(f"; {name} was skipped: {why}" for name, why in passed["skipped"].items())
        yield f"{gate['gpu']}: commit `{passed['commit']}` passed the whole gate on {passed['date'][:10]} ({counts}{skipped})."
        changed = [op for op, digest in kernels.digests().items() if passed["kernels"][op] != digest]
        if changed:
            yield f"{gate['gpu']}: what the kernels of {', '.join(changed)} are made of has changed since, and awaits it."
    cut = {name: step["counts"].get("passed", 0) for name, step in steps.items() if _was_cut_off(step)}
    red = [name for name, step in steps.items() if step["status"] == "failed" and name not in cut]
    missing = [name for name in gate.get("planned", ()) if name not in steps]
    what = [f"failed in {', '.join(red)}"] if red else []
    if cut:
        ends = (f"{name} after {count:,} passed and none failed" for name, count in cut.items())
        what.append(f"was cut off: {', '.join(ends)}")
    if what and missing:
        what.append(f"{', '.join(missing)} did not run")
    if what:
        yield f"{gate['gpu']}: the last run, of commit `{gate['commit']}`, {'; '.join(what)}."


def _was_cut_off(step):
    return step["status"] == "failed" and step.get("note", "").startswith((CUT_OFF, ENDED)) and not step["failures"]
