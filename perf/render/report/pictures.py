"""The report's charts of a GPU's records that its script does not draw: ladders, errors and those of a suite."""

from dataclasses import dataclass

from tritonkernels.choice import efficiency

from ...fit import counted, timed
from ...measure import contenders, measured, records, sweep_records
from ...show import charts
from ...show.picture import Picture
from .. import figures

RUNGS = 4  # ladders of an operation


def of_operation(gpu, op):
    """Pictures of suites that are of this operation."""
    cases = {suite: [case for case in own if case.op == op] for suite, own in gpu.suites.items()}
    if op == "gemv":
        yield figures.gemv_bandwidth(cases.get("gemv", []))
    if op == "conv2d":
        yield figures.conv2d_channels([case for own in cases.values() for case in own])
    if op == "matmul":
        yield figures.matmul_squares(cases.get("square", []))
        yield from errors(gpu)


@dataclass(frozen=True)
class Ladder:
    """Every design on one problem: its speed relative to the vendor's library, measured and predicted."""

    case: measured.Case
    rows: dict[str, dict[str, tuple[float, float | None]]]  # {design: {implementation: (measured, predicted)}}

    @property
    def vendor(self):
        return measured.vendor_of(self.case.op)

    def place(self, speed):
        """Where on the axis from 0 to the highest speed, as a length of CSS."""
        most = max(1, *(own for row in self.rows.values() for pair in row.values() for own in pair if own))
        return f"{100 * speed / most:.1f}%"


def ladders(gpu, op):
    """The Ladders of the cases in which most designs were timed; of more than RUNGS cases some of each size."""
    cases = [case for own in gpu.suites.values() for case in own if case.op == op]
    most = max((len(case.designs) for case in cases), default=0)
    full = [case for case in cases if len(case.designs) == most]
    full.sort(key=lambda case: case.vendor.tflops * case.vendor.median_ms)
    step = max(1, (len(full) - 1) // (RUNGS - 1))
    return [_ladder(case, gpu.target) for case in full[::-step][:RUNGS]]


def _ladder(case, target):
    predictions, rows = predicted(case, target), {}
    for r in case.designs:
        seconds = predictions.get((r.implementation, r.design))
        rows.setdefault(r.design, {})[r.implementation] = r.ratio_to_torch, seconds and case.vendor.median_ms / 1e3 / seconds
    return Ladder(case, rows)


def predicted(case, target):
    """{(implementation, design): seconds} of a measured.Case by the model of time, of the configs that are legal today."""
    if target is None:
        return {}
    runs = {
        library: [timed.Run(r.design, r.config, r.median_ms / 1e3) for r in case.of(package)]
        for package, library in contenders.PACKAGES.items()
    }
    shape = timed.Timed("", sweep_records.problem_of(case.op, case.vendor.problem), None, runs)
    found = counted.counted([shape], target)
    if not found:
        return {}
    _, predicted = counted.predicted(found, efficiency.sustained(target.name))
    seconds = {(run.package, run.run.design): of_run for run, of_run in zip(found, predicted.seconds.tolist())}
    return {(r.implementation, r.design): seconds.get((contenders.PACKAGES[r.implementation], r.design)) for r in case.designs}


def errors(gpu):
    """Speed against error of the largest square in every precision, and the errors on ill-conditioned operands; with bounds."""
    if cases := [case for suite in ("precision", "square") for case in gpu.suites.get(suite, ())]:
        yield figures.matmul_precision(cases)
    file = gpu.folder / "errors.json"
    if file.exists():
        own, rows = records.read_rows(file), {}
        for row in own:
            if row["worst"]:
                mode = measured.arithmetic("float32", row["precision"])
                dot = figures.short(row["worst"]), figures.short(row["bound"])
                rows.setdefault(mode, {}).setdefault(row["implementation"], []).append(dot)
        data = {
            "title": "FP32 products of normal, wide-ranging and ill-conditioned operands: errors and bounds",
            "origin": measured.origin_in([row["environment"] for row in own]),
            "label": "the largest error of each kind of operands, relative to |A||B|",
        }
        yield Picture(charts.errors, data | {"rows": rows})
