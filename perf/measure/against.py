"""Records compared with earlier ones, row by row: what became slower or faster by more than a threshold and than the noise."""

import argparse
import statistics
from dataclasses import dataclass

from ..show import table
from . import records


@dataclass(frozen=True)
class Pair:
    """The same design on the same case, then and now."""

    then: records.Record
    now: records.Record

    @property
    def change(self):
        """The change of the median time: 0.1 is 10 % slower."""
        return self.now.median_ms / self.then.median_ms - 1

    def verdict(self, threshold):
        """ "failed", "slower", "faster" or "same": within the threshold (a share), or the spreads (20 to 80 %) overlap."""
        if not self.now.ok:
            return "failed"
        if self.change > threshold and self.now.p20_ms > self.then.p80_ms:
            return "slower"
        return "faster" if self.change < -threshold and self.now.p80_ms < self.then.p20_ms else "same"


def file(name):
    """The records of a file, as the type of a command's argument: read before anything is measured."""
    try:
        return records.read_json(name)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot read {name}: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise argparse.ArgumentTypeError(f"{name} has no records of perf compare: {type(error).__name__}: {error}") from error


def percent(text):
    """A share, of a percentage that is not negative."""
    if not 0 <= float(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"it must be a percentage from 0 up; got {text}")
    return float(text) / 100


def pairs(then, now):
    """The Pairs of rows that were timed then: those of the same config, else of the design's other one. Peers have none, nor
    have rows of which one was timed as calls in a row and the other was not."""
    known = {}
    for record in then:
        if record.ok and record.median_ms and not record.is_peer:
            known[_key(record)] = known[(*_key(record), _config(record))] = record
    found = [(known.get((*_key(record), _config(record))) or known.get(_key(record)), record) for record in now]
    return [Pair(before, record) for before, record in found if before and _compares(before, record)]


def _compares(then, now):
    return not now.ok or (now.median_ms is not None and _is_in_a_row(then) == _is_in_a_row(now))


def _is_in_a_row(record):
    return record.calls is not None and record.calls > 1


def report(then, now, threshold):
    """Print what has changed; the exit status: 1 if something is slower, has failed, or there is nothing to compare."""
    paired = pairs(then, now)
    by_verdict = {verdict: [] for verdict in ("failed", "slower", "faster", "same")}
    for pair in paired:
        by_verdict[pair.verdict(threshold)].append(pair)
    changed = [(verdict, pair) for verdict in ("failed", "slower", "faster") for pair in by_verdict[verdict]]
    if changed:
        headings = ["problem", "implementation", "design", "then us", "now us", "change", "verdict"]
        table.print_table(headings, [_row(verdict, pair) for verdict, pair in changed])
        print()
    if targets := sorted({f"{p.then.target} then, {p.now.target} now" for p in paired if p.then.target != p.now.target}):
        print(f"Not the same GPU: {'; '.join(targets)}.")
    if torchs := [pair.change for pair in paired if pair.now.implementation == "torch" and pair.now.ok]:
        print(
            f"torch's own times changed by {statistics.median(torchs):+.1%} (median), of which no change of ours is the cause."
        )
    counted = ", ".join(f"{len(by_verdict[verdict])} {verdict}" for verdict in by_verdict)
    single = len(then) + len(now) - 2 * len(paired)
    print(f"{len(paired)} rows compared: {counted} (within {100 * threshold:g} % or the spreads); {single} without a partner")
    return 1 if by_verdict["failed"] or by_verdict["slower"] or not paired else 0


def _key(record):
    return record.op, record.case, record.implementation, record.design


def _config(record):
    return tuple(sorted(record.config.items()))


def _row(verdict, pair):
    then, now = pair.then, pair.now
    if _config(then) != _config(now):
        verdict += ", with another config"
    name = [f"{now.op} {now.case}", now.implementation, now.design, f"{1e3 * then.median_ms:.2f}"]
    if not now.ok:
        return [*name, "", "", f"{verdict}: {now.message}"]
    return [*name, f"{1e3 * now.median_ms:.2f}", f"{pair.change:+.1%}", verdict]
