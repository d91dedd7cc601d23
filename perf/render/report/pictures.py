"""The report's charts of a GPU's records: those that span suites, and ladders, rooflines and errors."""

from tritonkernels.choice import model

from ...fit import counted, timed
from ...measure import contenders, records, sweep_records
from .. import charts, figures, measured
from ..measured import PACKAGES
from ..picture import Picture

RUNGS = 4  # ladders of an operation
UNIT = 1e12  # FLOP/s, and bytes per second


def overview(gpu):
    return [figures.summary(gpu.suites)] if gpu.suites else []


def of_docs(gpu):
    """Charts of a chapter's suite, for which there are records."""
    convolutions = [case for cases in gpu.suites.values() for case in cases if case.op == "conv2d"]
    drawn = [figures.gemv_bandwidth(gpu.suites.get("gemv", [])), figures.matmul_squares(gpu.suites.get("square", []))]
    return [picture for picture in (*drawn, figures.conv2d_channels(convolutions)) if picture]


def ladders(gpu):
    """Of each operation the cases in which most designs were timed; of more than RUNGS some of each size."""
    cases = [case for own in gpu.suites.values() for case in own]
    for op in dict.fromkeys(case.op for case in cases):
        most = max(len(case.designs) for case in cases if case.op == op)
        full = [case for case in cases if case.op == op and len(case.designs) == most]
        full.sort(key=lambda case: case.vendor.tflops * case.vendor.median_ms)
        step = max(1, (len(full) - 1) // (RUNGS - 1))
        yield from (_ladder(case, gpu.target) for case in full[::-step][:RUNGS])


def _ladder(case, target):
    predictions, rows = predicted(case, target), {}
    for r in case.designs:
        seconds = predictions.get((r.implementation, r.design))
        speed = seconds and figures.short(case.vendor.median_ms / 1e3 / seconds)
        rows.setdefault(r.design, {})[r.implementation] = figures.short(r.ratio_to_torch), speed
    vendor = measured.vendor_of(case.op)
    line = {"vendor": vendor, "line": 1, "label": f"speed relative to {vendor}"}
    return figures.picture(charts.bars, f"{case.op} {case.name}, {case.arithmetic}", [case], rows=rows, **line)


def predicted(case, target):
    """{(implementation, design): seconds} of a measured.Case by the model of time, of the configs that are legal today."""
    if target is None:
        return {}
    runs = {
        library: [timed.Run(r.design, r.config, r.median_ms / 1e3) for r in case.of(package)]
        for package, library in contenders.PACKAGES.items()
    }
    shape = timed.Timed("", sweep_records.problem_of(case.op, case.vendor.problem), None, runs)
    sustained = model.sustained(target.name)
    seconds = {
        (run.package, run.run.design): run.predicted(model.of_design(sustained, *run.key.split()))
        for run in counted.counted([shape], target)
    }
    return {(r.implementation, r.design): seconds.get((contenders.PACKAGES[r.implementation], r.design)) for r in case.designs}


def rooflines(gpu):
    """A roofline of each operation, with every design of every case."""
    for op in gpu.ops if gpu.target and gpu.target.dram_bandwidth else ():
        cases = [case for case in gpu.cases if case.op == op]
        points = {
            package: [
                (
                    figures.short(case.problem.intensity),
                    [figures.short(case.problem.flops / seconds / UNIT) for seconds in case.seconds[package].values()],
                )
                for case in cases
                if package in case.seconds
            ]
            for package in PACKAGES
        }
        peaks = {case.arithmetic: gpu.target.peak(case.problem.precision) for case in cases}
        peaks = {name: figures.short(peak / UNIT) for name, peak in peaks.items() if peak}
        roofs = {", ".join(name for name in peaks if peaks[name] == peak): peak for peak in peaks.values()}
        origins = sorted({r.origin for case in cases for r in case.results.values()})
        data = {
            "title": f"{op}: every timed design",
            "origin": measured.origin_in([gpu.origins[i - 1]._asdict() for i in origins]),
            "points": points,
            "roofs": roofs,
            "bandwidth": gpu.target.dram_bandwidth / UNIT,
        }
        yield Picture(charts.roofline, data)


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
