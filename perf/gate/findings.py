"""What the programs of the gate's steps wrote: it can be read while they run, and after they were killed."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Findings:
    counts: Counter
    failures: dict[str, str] = field(default_factory=dict)  # by name, all of them
    warnings: dict[str, str] = field(default_factory=dict)
    used: frozenset[str] = frozenset()  # the operations that its tests used


def read_tests(log):
    """What gate_pytest.py recorded. Of several outcomes of a test the first bad one counts."""
    outcomes = {}
    for line in _lines(log.with_suffix(".jsonl")):
        entry = json.loads(line)
        if outcomes.get(entry["name"], {}).get("outcome") not in ("failed", "error"):
            outcomes[entry["name"]] = entry
    bad = {name: entry["why"] for name, entry in outcomes.items() if entry["outcome"] in ("failed", "error")}
    used = frozenset(_lines(log.with_suffix(".used")))
    return Findings(Counter(entry["outcome"] for entry in outcomes.values()), bad, used=used)


def read_calls(log):
    """What tests/gate/child.py and build.py print."""
    lines = _lines(log)
    started = sum(line.startswith("RUN ") for line in lines)
    wrong = dict(line.removeprefix("WRONG ").split(": ", 1) for line in lines if line.startswith("WRONG "))
    ended, last = any(line.startswith("DONE ") for line in lines), lines[-1] if lines else "none"
    cut = {} if ended else {log.stem: f"it did not end; its last line: {last}"}
    return Findings(Counter(passed=max(0, started - len(wrong) - len(cut)), failed=len(wrong)), wrong | cut)


def read_instrumented(log):
    """The calls, and the assertions that Triton's sanitizer compiled into their kernels, where they failed."""
    calls, found, call = read_calls(log), {}, log.stem
    for line in _lines(log):
        call = line.removeprefix("RUN ") if line.startswith("RUN ") else call
        if failed := re.match(r"(\S+:\d+): .*Assertion `(.*)` failed", line):
            found.setdefault(call, {})[f"{failed[2]} at {failed[1]}"] = None
    failures = {call: "; ".join([*messages, calls.failures.get(call, "")]) for call, messages in found.items()}
    return Findings(calls.counts, calls.failures | failures)


def read_sanitized(log):
    """The calls, and compute-sanitizer's own log: each kind of error with its kernel, and how often it was printed."""
    calls, lines = read_calls(log), [line.removeprefix("=========") for line in _lines(log.with_suffix(".sanitizer"))]
    summary = next((line for line in lines if "ERROR SUMMARY:" in line or "RACECHECK SUMMARY:" in line), None)
    if summary is None:
        missing = {f"{log.stem}, no summary": " ".join(lines[-3:]).strip() or "no output"}
        return Findings(calls.counts, calls.failures | missing)
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (error|warning)", summary)}
    failures, warnings = {}, {}
    for (name, detail), times in _reports(lines).items():
        into = warnings if name.startswith("Warning") else failures
        into[name] = f"{times} times, {detail}"
    if counts.get("error") and not failures:
        failures[f"{log.stem}, summary"] = summary.strip()
    return Findings(calls.counts + Counter(counts), calls.failures | failures, warnings)


def _reports(lines):
    """{(error and place, details of the first): count}. A report is a line and the indented ones that follow it."""
    counts, first = Counter(), {}
    for index, line in enumerate(lines):
        if re.match(r" [A-Z]", line) and not re.search(r"SUMMARY|COMPUTE-SANITIZER", line):
            indented = []
            for rest in lines[index + 1 :]:
                if not rest.startswith("  "):
                    break
                indented.append(rest.strip())
            where = [text for text in indented if re.match(r"(at|and) ", text)][:1]
            name = " ".join([line.strip(), *where])
            first.setdefault(name, "; ".join(text for text in indented if text not in where))
            counts[name] += 1
    return {(name, first[name]): times for name, times in counts.items()}


def _lines(path):
    """The complete lines of a file that may be missing or still be written."""
    return path.read_text(errors="replace").split("\n")[:-1] if path.exists() else []
