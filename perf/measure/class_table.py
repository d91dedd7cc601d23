"""Speed by class of call (measure/classes.py): how each package's default choice compares with torch's best way."""

import itertools
import statistics
from dataclasses import dataclass, field

from ..show import table
from ..show.table import us
from .classes import CLASSES, SUITE, Class, class_of
from .measured import PACKAGES
from .records import Record

BELOW = (0.95, 0.90)
WORST = 5
MISSED = "!"


@dataclass(frozen=True)
class Judged:
    """What a package made of a case, and torch's fastest row that is right; None where there is none."""

    record: Record
    vendor: Record | None

    @property
    def ratio(self):
        """torch's time over ours; None where either has none."""
        return self.record.ratio_to_torch if self.record.ok else None


@dataclass(frozen=True)
class Side:
    """A package in a class."""

    cases: list[Judged]  # that have a ratio, the slowest first
    others: list[Judged]  # refused, wrong, not run, or without a time or a row of torch to compare with

    @property
    def ratios(self):
        return [judged.ratio for judged in self.cases]

    @property
    def mean(self):
        """The geometric mean; None if there is no ratio, as for `worst`."""
        return statistics.geometric_mean(self.ratios) if self.cases else None

    @property
    def worst(self):
        return self.ratios[0] if self.cases else None

    def below(self, limit):
        """How many ratios are."""
        return sum(ratio < limit for ratio in self.ratios)


@dataclass(frozen=True)
class ClassResult:
    class_: Class
    packages: dict[str, Side]  # of "triton" and "cuda", those that the records have
    vendor_wrong: list[Record] = field(default_factory=list)  # torch's rows that are not right, which are no baseline

    @property
    def count(self):
        """How many cases there are."""
        return max((len(side.cases) + len(side.others) for side in self.packages.values()), default=0)


def of_records(records):
    """A ClassResult of each class that the records have, in the order of CLASSES. Of a repeated row the last one counts."""
    by_class = {name: {} for name in CLASSES}
    for record in records:
        if record.suite == SUITE and class_of(record.case):
            rows = by_class[class_of(record.case).name].setdefault((record.target, record.seed, record.op, record.case), {})
            rows[record.implementation, record.design if record.implementation == "torch" else None] = record
    return [_result(CLASSES[name], own.values()) for name, own in by_class.items() if own]


def _result(class_, cases):
    sides = {package: ([], []) for package in PACKAGES}
    wrong = []
    for rows in (list(case.values()) for case in cases):
        torchs = [r for r in rows if r.implementation == "torch"]
        wrong += [r for r in torchs if not r.ok]
        for record in (r for r in rows if r.implementation in PACKAGES):
            judged = Judged(record, _fastest(torchs))
            sides[record.implementation][judged.ratio is None].append(judged)
    packages = {
        name: Side(sorted(timed, key=lambda judged: judged.ratio), others)
        for name, (timed, others) in sides.items()
        if timed or others
    }
    return ClassResult(class_, packages, wrong)


def _fastest(torchs):
    """torch's row that ratios are to."""
    timed = [r for r in torchs if r.ok and r.median_ms is not None]
    return min(timed, key=lambda r: r.median_ms, default=None)


def rows(results):
    """(headings, rows of text): a class each, with its goals; a figure that misses its goal is followed by MISSED."""
    headings = ["class", "cases", "goal: mean, worst"]
    for title in PACKAGES.values():
        headings += [f"{title}: mean", "worst", *(f"< {limit:.2f}" for limit in BELOW), "no time"]
    return headings, [_row(result) for result in results]


def _row(result):
    goal = result.class_
    cells = [goal.name, str(result.count), f"{goal.mean:.2f}, {goal.worst:.2f}"]
    for package in PACKAGES:
        side = result.packages.get(package)
        if side is None:
            cells += ["-"] * 5
            continue
        cells += [_goal(side.mean, goal.mean), _goal(side.worst, goal.worst)]
        cells += [str(side.below(limit)) if side.cases else "-" for limit in BELOW] + [str(len(side.others))]
    return cells


def _goal(value, goal):
    return "-" if value is None else f"{value:.2f}{MISSED if value < goal else ''}"


def markdown_table(results):
    return table.markdown(*rows(results))


def worst(result, package, number=WORST):
    """A line on each of the package's slowest cases: both times, design, config, and the vendor's kernels."""
    side = result.packages.get(package)
    return [_line(judged) for judged in side.cases[:number]] if side else []


def _line(judged):
    ours, vendor = judged.record, judged.vendor
    config = ", ".join(f"{name} {value}" for name, value in ours.config.items())
    kernels = f", {_in_short(vendor.kernels)}" if vendor.kernels else ""
    own = f"{us(ours.median_ms)} us by {ours.design} ({config})"
    return f"{judged.ratio:.2f}  {ours.case}: {own}; torch {us(vendor.median_ms)} us by {vendor.design}{kernels}"


def _in_short(kernels):
    """The names of kernels, without the types of their templates and of their parameters."""
    names = []
    for kernel in kernels:
        depth, name = 0, ""
        for letter in kernel.removeprefix("void "):
            depth += letter in "<("
            name += letter * (depth == 0)
            depth -= letter in ">)"
        names.append(name.strip())
    runs = [(name, len(list(same))) for name, same in itertools.groupby(names)]
    return " + ".join(f"{count} x {name}" if count > 1 else name for name, count in runs)


def not_timed(results):
    """A line on each row of a package that is refused, wrong, not run or without a torch to compare with."""
    for result in results:
        for package, side in result.packages.items():
            for judged in side.others:
                r = judged.record
                why = r.message or (
                    "no time: there is no GPU" if r.median_ms is None else "torch has no right row to compare with"
                )
                yield f"{r.op} {r.case}, {PACKAGES[package]} {r.design}: {why}"


def vendor_wrong(results):
    """A line on each row of torch that is wrong: such a row is no baseline."""
    for result in results:
        for r in result.vendor_wrong:
            kernels = f" ({_in_short(r.kernels)})" if r.kernels else ""
            yield f"{r.op} {r.case}, torch {r.design}{kernels}: {r.message}"


def show(results, quiet=False):
    """Print the table and what is to be known of it; only failures if quiet. The exit status: 1 if a row of ours has failed."""
    if not quiet:
        _show_table(results)
    for line in (wrong := list(vendor_wrong(results))):
        print(f"torch is wrong, and no baseline: {line}")
    for line in (missing := list(not_timed(results))):
        print(f"No time: {line}")
    print(
        f"{sum(result.count for result in results)} cases, {len(missing)} rows without a time, {len(wrong)} wrong ones of torch"
    )
    return 1 if any(not judged.record.ok for result in results for judged in _others(result)) else 0


def _show_table(results):
    """Shows the table after the slowest cases, so that a terminal ends with it."""
    for result in results:
        for package in (name for name in result.packages if result.packages[name].cases):
            print(f"\n{result.class_.name}, {PACKAGES[package]}, against {result.class_.against}:")
            print("\n".join(f"  {line}" for line in worst(result, package)))
    print(f"\ntorch's time, by its fastest way that is right, over ours. {MISSED} misses the goal of the class.")
    table.print_table(*rows(results))
    print()


def _others(result):
    return (judged for side in result.packages.values() for judged in side.others)
