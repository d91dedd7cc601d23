"""docs/results.md: our speed against the vendor library's, first by class, then each suite's cases, wins and losses."""

import statistics

import tritonkernels
from tritonkernels.launch import LIBRARY

from ..measure import class_table, measured
from ..measure.measured import PACKAGES
from ..measure.models import table as models
from ..show import table
from . import figures

CHARTS = {"models": models.picture, "classes": figures.of_classes}  # of a GPU: charts/GPU/NAME.svg

INTRODUCTION = """\
# Results

How fast calls are compared with the vendor library, cuBLAS or cuDNN, as PyTorch calls it. `make docs` writes this page
from the records in [perf/results](../perf/results); [the README there](../perf/results/README.md) says how each file was
measured, at which commits, and which rows are older than their kernel. `make report` draws more of them.

How to read it:

- Times are medians on the GPU, in microseconds, with the 20th to 80th percentile in brackets. Ours and the vendor's were timed
  in turns in the same run, on the same random operands; every result was checked against float64.
- *x* is the vendor's time over ours: above 1 we are faster. The vendor computes in the same precision, or in fp32 where ours
  has fp32 accuracy; for convolutions it is the faster of both memory formats, by the algorithm that cuDNN's own search finds.
- **Classes** are what speed is judged by: calls of one kind, drawn afresh for each run, so that nothing was fitted to them. A
  call names no design. There is no figure over several classes, since it would depend on how many cases each of them has.
- **Suites** are fixed lists of cases. There each row has the fastest design of those that were timed. A call without `design=`
  uses the one that `explain` names, which is not always the fastest. *Even*: the spreads overlap.
- L2 is flushed before each timed run, except in the suite `gemv`.
- `gemv` with int8 weights has not been timed: PyTorch has no such product to compare with.
"""
CLASSES = """\
One row a class: the geometric mean of torch's time over ours, the worst case, and how many are below {below}, for each
package. A figure followed by {missed} misses its goal. *No time*: refused, wrong, or not run; these are listed below. {origin}.
"""
NO_MODELS = "No model has been measured on this GPU yet. `python -m perf models` does it."
NO_CLASSES = "The classes have not been measured on this GPU yet. `python -m perf compare --suite classes` does it."


def markdown():
    first, *others = measured.gpus()
    return INTRODUCTION + _of_gpu(first) + "".join(_of_gpu(folder, f" ({folder.name.upper()})") for folder in others)


def of_readme(gpu):
    """README's pictures of whole models and of classes; or what to run for them."""
    folder = measured.RESULTS / gpu
    return "\n\n".join(_picture("docs/", folder, *own) for own in (("models", NO_MODELS), ("classes", NO_CLASSES)))


def _picture(docs, folder, name, instead):
    """The link to a GPU's chart, from a page that has docs so far away; the sentence `instead` where there is none."""
    picture = CHARTS[name](folder)
    return f"![{picture.data['title']}]({docs}charts/{folder.name}/{name}.svg)" if picture else instead


def _of_gpu(folder, name=""):
    """A GPU's part. `name` stands in its headings, so that there are no two of the same anchor on the page."""
    suites = measured.suites(folder)
    timed = [*measured.drawn(folder), *(cases[0].vendor for cases in suites.values())]
    parts = [f"\n## {timed[0].target}\n", f"### Whole models{name}\n", *_models(folder)]
    parts += [f"### Classes{name}\n", *_classes(folder)]
    parts += [f"### Suites{name}\n", table.markdown(*_summary(suites, name)), ""]
    parts += [
        "Median host time of a repeated call, in microseconds:\n",
        table.markdown(*_host(suites)),
        "",
    ]
    parts += ["Designs that were not timed on this GPU:\n", *_untimed(suites), ""]
    for suite, cases in suites.items():
        heading, sentence = measured.HEADINGS.get(suite, (suite, ""))
        parts += [f"### {heading}{name}\n", f"{sentence} Suite `{suite}`: {measured.origin(cases)}.\n"]
        parts += [table.markdown(*_cases(cases)), ""]
    return "\n".join(parts)


def _models(folder):
    """The picture and the tables, or what to run for them."""
    text = models.markdown(folder)
    picture = _picture("", folder, "models", "")
    return [part + "\n" for part in (picture, text or NO_MODELS) if part]


def _classes(folder):
    """The picture, the table, and the worst case of each class; then what has no time, and torch's wrong rows."""
    drawn = measured.drawn(folder)
    results = class_table.of_records(drawn)
    if not results:
        yield NO_CLASSES + "\n"
        return
    below = " and ".join(f"{limit:.2f}" for limit in class_table.BELOW)
    origin = measured.origin_in([r.environment for r in drawn])
    yield CLASSES.format(below=below, missed=class_table.MISSED, origin=origin)
    if picture := _picture("", folder, "classes", ""):
        yield picture + "\n"
    yield class_table.markdown_table(results) + "\n"
    worst = [
        f"- {PACKAGES[package]} {line}"
        for result in results
        for package in result.packages
        for line in class_table.worst(result, package, 1)
    ]
    lists = {
        "The slowest case of each class in each package, and the vendor's kernels": worst,
        "Without a time": [f"- {line}" for line in class_table.not_timed(results)],
        "Wrong results of torch, which are no baseline": [f"- {line}" for line in class_table.vendor_wrong(results)],
    }
    for heading, lines in lists.items():
        if lines:
            yield "\n".join([f"<details markdown><summary>{heading}: {len(lines)}</summary>\n", *lines, "\n</details>\n"])


def _summary(suites, name):
    headings = ["suite", "cases"]
    for package in PACKAGES.values():
        headings += [f"{package}: least x", "most", "ahead / even / behind"]
    body = []
    for suite, cases in suites.items():
        for title, own in measured.parts(suite, cases).items():
            row = [f"[{title}](#{anchor(measured.heading_of(suite) + name)})", str(len(own))]
            for package in PACKAGES:
                best = [(case, case.best(package)) for case in own if case.of(package)]
                row += _of_package(best) if best else ["-"] * 3
            body.append(row)
    return headings, body


def _of_package(best):
    ratios = [r.ratio_to_torch for _, r in best]
    verdicts = [case.verdict(r) for case, r in best]
    counts = " / ".join(str(verdicts.count(verdict)) for verdict in ("ahead", "even", "behind"))
    return [f"{min(ratios):.2f}", f"{max(ratios):.2f}", counts]


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
    return f"{table.us(record.median_ms)} ({table.us(record.p20_ms)}-{table.us(record.p80_ms)})"


def anchor(heading):
    """GitHub's anchor of a heading."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")
