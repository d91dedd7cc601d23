"""Whole models, with torch's modules and with ours: tables and a chart of the records of `python -m perf models`."""

import statistics

from ...show import model_chart, table
from ...show.picture import Picture
from .. import measured, packed, records
from .kernel_time import OPERATIONS
from .one import CHOSEN, EAGER, FORWARD, GRAPH, STEP

GOAL = 1.05  # of the mean; no model below 1.00
NAMED = 4  # extra kernels of a step, the longest
WAYS = ((FORWARD, GRAPH), (FORWARD, EAGER), (STEP, GRAPH), (STEP, EAGER))
SPEED = ["model", "type", "inputs", "modules", "ours", *(f"{what}, {way}" for what, way in WAYS)]
COSTS = ["model", "type", "inputs", "modules", "error", "of gradients", "forward MB", "step MB", "first call s"]
INTRODUCTION = """\
Every `Linear` and `Conv2d` of a model is replaced by ours (`nn.replace(model, only_where_faster=False)`); weights are random.
{origin}, at {commits}. A training step is forward and backward, without an optimizer. Each cell is torch's
median time over ours in the same run: above 1 ours is faster. *graph* is a CUDA graph, which leaves out the host, *eager* is
call by call. The goal is a mean of {goal:.2f} and nothing below 1.00.
"""
WAITS = """\
These kernel times include, of kernels that are launched before the one before them has ended, as ours are, how long they wait
for it. So the sums of ours are up to a third above the time of the step.
"""


def rows_of(folder):
    """The rows of a GPU's models.json, packed or not; none without it."""
    path = packed.find(folder / "models.json")
    return records.read_rows(path) if path.exists() else []


def markdown(folder):
    """The section of docs/results.md; empty without records."""
    rows = rows_of(folder)
    if not rows:
        return ""
    origin = measured.origin_in([row["environment"] for row in rows])
    of_commits = {}
    for row in rows:
        of_commits.setdefault(row["environment"]["commit"], {})[row["title"]] = None
    commits = "; ".join(f"`{commit}`: {', '.join(titles)}" for commit, titles in of_commits.items())
    parts = [INTRODUCTION.format(origin=origin, commits=commits, goal=GOAL)]
    for title, headings, body in tables(rows):
        parts += [f"{title}:\n", table.markdown(headings, body) + "\n"]
    if any(not own.get("alone") for row in rows for own in row["kernels"].values()):
        parts += [WAITS]
    parts += [f"- {line}" for line in unsound(rows)]
    return "\n".join(parts)


def picture(folder):
    """Bars of each model's speed relative to torch's; None without records."""
    rows, bars = rows_of(folder), {}
    for group in _models(rows):
        for whose in _others(group):
            ratios = {f"{what}, {way}": ratio(group.get(what), whose, way) for what, way in WAYS}
            if not whose.endswith(CHOSEN) and any(ratios.values()):
                bars.setdefault(name_of(group), {})[whose] = {way: x and round(x, 3) for way, x in ratios.items()}
    if not bars:
        return None
    origin = measured.origin_in([row["environment"] for row in rows])
    title = "Whole models with every Linear and Conv2d ours"
    return Picture(model_chart.bars, {"title": title, "origin": origin, "rows": bars, "goal": GOAL})


def tables(rows):
    """(title, headings, rows of text) of rows as dicts: speed and costs of each model, and where the time goes."""
    groups = [group for group in _models(rows) if any(row["error"] for row in group.values())]
    lines = [(group, whose) for group in groups for whose in _others(group)]
    if any(row["times"] for group in groups for row in group.values()):
        body = [
            [*_of(group, whose), *(_two_digits(ratio(group.get(what), whose, way)) for what, way in WAYS)]
            for group, whose in lines
        ]
        for whose in dict.fromkeys(whose for _, whose in lines):
            body += _over_all([group for group, own in lines if own == whose], whose)
        yield "torch's time over ours", SPEED, body
    if lines:
        yield "Errors, relative to float64, and costs: ours / torch's", COSTS, [_costs(group, whose) for group, whose in lines]
    profiled = [row for group in groups for row in group.values() if row["kernels"].get("torch")]
    if profiled:
        operations = [name for name in OPERATIONS if any(name in row["kernels"]["torch"]["operations"] for row in profiled)]
        headings = ["model", "step", "modules", "all kernels us", *operations, "kernels that ours adds"]
        body = [_where(row, whose, operations) for row in profiled for whose in row["kernels"] if whose != "torch"]
        yield "Where the time goes: kernel time of a call in us, ours / torch's", headings, body


def unsound(rows):
    """A sentence about each row that is not right, or was not run."""
    for row in rows:
        if not row["ok"]:
            what = ", ".join(filter(None, (row["title"], row["dtype"], row["size"], row["what"])))
            yield f"{'Not run' if row['ok'] is None else 'Failed'}: {what}: {row['message']}"


def ratio(row, whose, way):
    """torch's median time over that of the modules, or None."""
    if row is None or way not in row["times"].get(whose, {}):
        return None
    return row["times"]["torch"][way]["median_us"] / row["times"][whose][way]["median_us"]


def name_of(group):
    row = next(iter(group.values()))
    return f"{row['title']}, {row['size']}, {row['dtype']}"


def _models(rows):
    """{what: row} of each model in each type."""
    groups = {}
    for row in rows:
        groups.setdefault((row["model"], row["dtype"]), {})[row["what"]] = row
    return list(groups.values())


def _others(group):
    """Whose modules there are, but torch's."""
    return [whose for whose in dict.fromkeys(name for row in group.values() for name in row["error"]) if whose != "torch"]


def _of(group, whose):
    row = next(iter(group.values()))
    return [row["title"], row["dtype"], row["size"], whose, f"{row['replaced'][whose]} of {row['layers']}"]


def _over_all(groups, whose):
    """Two rows: the geometric mean of all models, and how many are below 1."""
    columns = [[x for x in (ratio(group.get(what), whose, way) for group in groups) if x] for what, way in WAYS]
    means = [_two_digits(statistics.geometric_mean(column) if column else None) for column in columns]
    yield [f"geometric mean, goal {GOAL:.2f}", "", "", whose, "", *means]
    yield ["below 1.00", "", "", whose, "", *(f"{sum(x < 1 for x in column)} of {len(column)}" for column in columns)]


def _costs(group, whose):
    last = group.get(STEP) or group[FORWARD]

    def both(values, text):
        return f"{text(values[whose])} / {text(values['torch'])}" if whose in values and "torch" in values else "-"

    def megabytes(what):
        return both(group[what]["peak_bytes"], lambda size: f"{size / 2**20:.0f}") if what in group else "-"

    first = {name: sum(row["first_s"].get(name, 0.0) for row in group.values()) for name in last["first_s"]}
    errors = both(group[FORWARD]["error"], "{:.1e}".format), both(last["gradient_error"], "{:.1e}".format)
    return [*_of(group, whose)[:4], *errors, megabytes(FORWARD), megabytes(STEP), both(first, "{:.1f}".format)]


def _where(row, whose, operations):
    ours, torchs = row["kernels"][whose], row["kernels"]["torch"]

    def cell(own, other):
        return f"{own:.0f} / {other:.0f}" if own or other else ""

    columns = [cell(ours["operations"].get(name, 0), torchs["operations"].get(name, 0)) for name in operations]
    whole = cell(sum(ours["operations"].values()), sum(torchs["operations"].values()))
    extra = [f"{operation}: {kernel} {count:.3g} x, {us:.0f} us" for kernel, operation, count, us in ours["extra"][:NAMED]]
    rest = ours["extra"][NAMED:]
    extra += [f"{len(rest)} more, {sum(us for *_, us in rest):.0f} us"] if rest else []
    label = f"{row['title']}, {row['size']}, {row['dtype']}"
    return [label, row["what"], whose, whole, *columns, "; ".join(extra)]


def _two_digits(x):
    return "-" if x is None else f"{x:.2f}"
