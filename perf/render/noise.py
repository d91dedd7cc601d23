"""How far the times of a GPU's records can be trusted, counted from the records: noise, host time, throttling."""

import statistics
from collections import Counter

from ..measure import measured

CLOSE = 0.01  # a second contender that is the same should be within this


def markdown(gpu):
    return "\n".join(f"- {line}" for line in of(measured.RESULTS / gpu)) or "Nothing yet: they are of an earlier method."


def of(folder):
    """Sentences; none without records of today's method."""
    rows = [r for rows in measured.runs(folder) for r in rows if r.median_ms and not r.is_peer]
    differences = sorted(abs(r.again_ms / r.median_ms - 1) for r in rows if r.again_ms)
    if differences:
        median, at_95 = statistics.median(differences), differences[int(0.95 * (len(differences) - 1))]
        within = sum(d <= CLOSE for d in differences) / len(differences)
        yield (
            f"In {len(differences)} cases torch ran twice, as two contenders: the medians differ by {median:.2%} in the median"
            f" and by {at_95:.1%} at 95 %; {within:.0%} are within {CLOSE:.0%}."
        )
    if counted := [r for r in rows if r.left_out is not None]:
        rounds, left_out = sum(r.rounds + r.left_out for r in counted), sum(r.left_out for r in counted)
        rounds_of = f"Of {rounds:,} rounds in {len(counted):,} rows {left_out:,} may include host time and are left out"
        exposed = sum(bool(r.exposed) for r in counted)
        yield f"{rounds_of}; in {exposed} rows too few remain without, so their times may include it."
        cases = {(r.suite, r.op, r.case): r.throttled for r in counted}
        reasons = ", ".join(f"{name} in {n}" for name, n in Counter(filter(None, cases.values())).most_common()) or "in none"
        yield f"The GPU kept its clocks down, also when they were timed once more: {reasons} of {len(cases)} cases."
