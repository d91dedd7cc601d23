"""Charts of the docs and the report, as pictures of records; no design is named here."""

import re

from ..measure import class_table, measured
from ..measure.measured import PACKAGES
from ..show import charts
from ..show.picture import Picture

AGAINST = "speed relative to {}, log scale; right of 1 we are faster"
IN_SHORT = {  # of names of cases
    r"float8_e4m3fn to bfloat16 scaled": "fp8",
    r"\bbfloat": "bf",
    r"\bfloat": "fp",
    r" precision \w+| padding \d+": "",
    "channels_last": "NHWC",
}


def of_docs(folder):
    """{name: Picture} of the charts of the chapters. The report draws others."""
    suites = measured.suites(folder)
    convolutions = [case for suite in ("image", "grouped", "resnet50") for case in suites[suite]]
    ladders = {"gemm_ladder": ladder(suites["ladder"], 4096), "matmul_ladder": ladder(suites["hopper"], 8192)}
    return ladders | {"conv2d_channels": conv2d_channels(convolutions)}


def of_classes(folder):
    """The Picture of speed by class, for README and the results; None without records of them."""
    drawn = measured.drawn(folder)
    rows = {result.class_.name: _strip(result) for result in class_table.of_records(drawn)}
    if not any(row[package]["ratios"] for row in rows.values() for package in PACKAGES if package in row):
        return None
    data = {
        "title": "Speed of every class of calls, by default choice",
        "origin": measured.origin_in([r.environment for r in drawn]),
        "rows": rows,
        "label": f"{AGAINST.format('torch')}; numbers are means of a class, bold where they reach its goal",
    }
    return Picture(charts.strips, data)


def _strip(result):
    """The row of a ClassResult in charts.strips."""
    row = {"goal": [result.class_.mean, result.class_.worst]}
    for package, side in result.packages.items():
        row[package] = {
            "ratios": [short(x) for x in side.ratios],
            "mean": side.mean and short(side.mean),
            "worst": _in_short(side.cases[0].record.case) if side.cases else None,
            "untimed": len(side.others),
        }
    return row


def _in_short(case):
    text = case.partition(": ")[2]
    for pattern, replacement in IN_SHORT.items():
        text = re.sub(pattern, replacement, text)
    return text


def ladder(cases, size):
    (case,) = (case for case in cases if case.name.split()[0] == f"{size}x{size}x{size}")
    line = {"vendor": "cuBLAS", "line": short(case.vendor.tflops), "label": "TFLOP/s"}
    return picture(charts.bars, f"The ladder at {size} x {size} x {size}", [case], rows=_by_design(case), **line)


def gemv_bandwidth(cases, m=16384):
    """Bandwidth of each design over the length of a row, for row-major fp32 with m rows, past L2."""
    walked = [case for case in cases if case.vendor.problem["m"] == m and case.name.endswith("rotating")]
    walked = [case for case in walked if case.vendor.problem["a_layout"] == "row" and case.arithmetic == "fp32"]
    walked = [case for case in walked if case.vendor.problem["n"].bit_count() == 1]  # a power of two: whole vectors
    others = {"(a copy)": lambda r: r.copy_gbps, "(cuBLAS)": lambda r: r.gbps}
    panels = {title: _lines(walked, package, "gbps", others) for package, title in PACKAGES.items()}
    labels = {"x_label": "N, elements of a row", "y_label": "GB/s"}
    return picture(charts.curves, f"gemv of {m} rows in fp32, past L2: bandwidth by design", walked, panels=panels, **labels)


def matmul_squares(cases, precision="fp16"):
    own = [case for case in cases if case.precision == precision]
    panels = {title: _lines(own, package, "ratio_to_torch") for package, title in PACKAGES.items()}
    labels = {"x_label": "N of an N x N x N product", "y_label": "speed relative to cuBLAS", "line": 1.0}
    return picture(charts.curves, f"matmul of squares in {precision}, by design", own, panels=panels, **labels)


def matmul_precision(cases):
    """Speed against error, for the largest square in each precision."""
    size = max(case.vendor.problem["n"] for case in cases)
    largest = [case for case in cases if case.vendor.problem["n"] == size]
    rows = [(title, case, case.best(package)) for case in largest for package, title in PACKAGES.items() if case.of(package)]
    rows += [("cuBLAS", case, case.vendor) for case in largest if case.vendor.precision == case.precision]
    points = [(who, case.arithmetic, short(r.tflops), short(r.error)) for who, case, r in rows]
    bounds = [(case.arithmetic, short(r.tflops), short(r.bound)) for _, case, r in rows]
    labels = {"x_label": "TFLOP/s", "y_label": "error of the worst element, relative to |A||B|", "bounds": bounds}
    return picture(
        charts.scatter, f"Products in every precision, {size} cubed: speed against error", largest, points=points, **labels
    )


def conv2d_channels(cases):
    """The fastest design's speed over the channels of a group."""
    best = [(title, case, case.best(package)) for case in cases for package, title in PACKAGES.items() if case.of(package)]
    points = [(who, case.arithmetic, _channels(r.problem), short(r.ratio_to_torch)) for who, case, r in best]
    labels = {"x_label": "input channels of a group", "y_label": "speed relative to cuDNN", "line": 1.0}
    return picture(charts.scatter, "Every timed convolution by its channels", cases, points=points, **labels)


def picture(draw, title, cases, **data):
    """None where there is no case."""
    return cases and Picture(draw, {"title": title, "origin": measured.origin(cases), **data})


def _by_design(case):
    """{design: {package: TFLOP/s}}, in the order of the records."""
    rows = {}
    for r in case.designs:
        rows.setdefault(r.design, {})[r.implementation] = short(r.tflops)
    return rows


def _lines(cases, package, attribute, others=None):
    """{design: [(n, value)]} of a package, then of the others: {name: value of the vendor's record}"""
    lines = {}
    for case in sorted(cases, key=lambda case: case.vendor.problem["n"]):
        values = {r.design: getattr(r, attribute) for r in case.of(package)}
        values |= {name: value(case.vendor) for name, value in (others or {}).items()}
        for name, value in values.items():
            lines.setdefault(name, []).append((case.vendor.problem["n"], short(value)))
    return lines


def _channels(problem):
    return problem["c"] // problem["groups"]


def short(number):
    """Six digits: more than a chart shows, and the same on every machine."""
    return float(f"{number:.6g}")
