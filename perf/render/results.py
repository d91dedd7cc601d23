"""docs/results.md: for each suite a table of our designs against the vendor library, wins and losses."""

import statistics

import tritonkernels
from tritonkernels.launch import LIBRARY

from . import measured, table
from .measured import PACKAGES

INTRODUCTION = """\
# Results

How fast the designs are compared with the vendor library, cuBLAS or cuDNN, as PyTorch calls it. `make docs` writes this page
from the records in [perf/results](../perf/results); [the README there](../perf/results/README.md) says how each file was
measured, and which rows are older than their kernel. `make report` draws them: heat maps, ladders and rooflines in one page.

How to read it:

- Times are medians on the GPU, in microseconds, with the 20th to 80th percentile in brackets. Ours and the vendor's were timed
  in turns in the same run, on the same random operands; every result was checked against float64.
- *x* is the vendor's time over ours: above 1 we are faster. The vendor computes in the same precision, or in fp32 where ours
  has fp32 accuracy; for convolutions it is the faster of both memory formats, by the algorithm that cuDNN's own search finds.
- Each row has the fastest design of those that were timed. A call without `design=` uses the one that `explain` names, which is
  not always the fastest.
- *Even*: the spreads overlap.
- L2 is flushed before each timed run, except in the suite `gemv`.
- `gemv` with int8 weights has not been timed: PyTorch has no such product to compare with.
"""


def markdown():
    return INTRODUCTION + "".join(_of_gpu(folder) for folder in measured.gpus())


def _of_gpu(folder):
    suites = measured.suites(folder)
    name = next(iter(suites.values()))[0].vendor.target
    parts = [f"\n## {name}\n", table.markdown(*_summary(suites)), ""]
    parts += [
        "Median host time of a repeated call, in microseconds:\n",
        table.markdown(*_host(suites)),
        "",
    ]
    parts += ["Designs that were not timed on this GPU:\n", *_untimed(suites), ""]
    for suite, cases in suites.items():
        heading, sentence = measured.HEADINGS.get(suite, (suite, ""))
        parts += [f"### {heading}\n", f"{sentence} Suite `{suite}`: {measured.origin(cases)}.\n"]
        parts += [table.markdown(*_cases(cases)), ""]
    return "\n".join(parts)


def _summary(suites):
    headings = ["suite", "cases"]
    for package in PACKAGES.values():
        headings += [f"{package}: mean x", "least", "most", "ahead / even / behind"]
    body = []
    for suite, cases in suites.items():
        for title, own in measured.parts(suite, cases).items():
            row = [f"[{title}](#{anchor(measured.heading_of(suite))})", str(len(own))]
            for package in PACKAGES:
                best = [(case, case.best(package)) for case in own if case.of(package)]
                row += _of_package(best) if best else ["-"] * 4
            body.append(row)
    return headings, body


def _of_package(best):
    ratios = [r.ratio_to_torch for _, r in best]
    verdicts = [case.verdict(r) for case, r in best]
    counts = " / ".join(str(verdicts.count(verdict)) for verdict in ("ahead", "even", "behind"))
    return [*(f"{x:.2f}" for x in (statistics.geometric_mean(ratios), min(ratios), max(ratios))), counts]


def _host(suites):
    body = []
    for op in dict.fromkeys(case.op for cases in suites.values() for case in cases):
        cases = [case for own in suites.values() for case in own if case.op == op]
        rows = {package: [case.best(package) for case in cases if case.of(package)] for package in PACKAGES}
        rows["torch"] = [case.vendor for case in cases]
        body.append([op, *(f"{1e3 * statistics.median(r.call_ms for r in own):.0f}" for own in rows.values())])
    return ["operation", *PACKAGES.values(), "torch"], body


def _untimed(suites):
    timed = {(case.op, r.implementation, r.design) for cases in suites.values() for case in cases for r in case.designs}
    libraries = dict(zip(PACKAGES, ("tritonkernels", "cuda_reference")))
    for op in tritonkernels.OPS:
        for package, title in PACKAGES.items():
            rungs = [rung for rung in LIBRARY.operation(op).own if rung.is_in(libraries[package])]
            names = [f"`{rung.name}`" for rung in rungs if (op, package, rung.name) not in timed]
            if names:
                yield f"- {op}, {title}: {', '.join(names)}"


def _cases(cases):
    several = len({case.op for case in cases}) > 1
    copied = any(case.vendor.copy_gbps for case in cases)
    headings = ["case", "vendor"]
    for package in PACKAGES.values():
        headings += [package, "us", "x"] + ["of a copy"] * copied
    body = []
    for case in cases:
        row = [f"{case.op} {case.name}" if several else case.name, f"{measured.vendor_of(case.op)} {_time(case.vendor)}"]
        for package in PACKAGES:
            best = case.best(package)
            row += [f"`{best.design}`", _time(best), f"{best.ratio_to_torch:.2f}"] if best else ["-"] * 3
            if copied:
                row.append(f"{best.gbps / best.copy_gbps:.2f}" if best and best.copy_gbps else "-")
        body.append(row)
    return headings, body


def _time(record):
    return f"{measured.us(record.median_ms)} ({measured.us(record.p20_ms)}-{measured.us(record.p80_ms)})"


def anchor(heading):
    """GitHub's anchor of a heading."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")
