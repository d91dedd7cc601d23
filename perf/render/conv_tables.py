"""Tables of docs/conv2d.md, from records of one GPU: machine code, both layouts, Hopper's kernels, and classes."""

import statistics

from ..measure import class_table, kernels, measured, records
from ..offline import sass
from ..show import table

FOLDER = measured.RESULTS / "h200"
OF_LOOPS = ("registers", "blocks an SM", "instructions", "math", "loads")
LIBRARIES = dict(zip(measured.PACKAGES, ("tritonkernels", "cuda_reference")))
LARGE = 1e10  # FLOP
PAIR = ("implicit_gemm", "warp_specialized")


def loops(*names):
    """The hot loop of each design, by the records of `perf inspect`."""
    rows = [row for row in records.read_rows(FOLDER / "code.json") if row["op"] == "conv2d" and row["design"] in names]
    found = {(row["implementation"], row["design"]): row for row in rows}
    body = []
    for name in names:
        own = [found[package, name] for package in measured.PACKAGES]
        body.append([f"`{name}`", *(cell for row in own for cell in _of_loop(row))])
    headings = [text for title in measured.PACKAGES.values() for text in (f"{title}: {OF_LOOPS[0]}", *OF_LOOPS[1:])]
    older = "" if all(map(kernels.is_current, rows)) else " Kernels have changed since."
    days = sorted({row["environment"]["date"][:10] for row in rows})
    return f"Compiled for an H200, {' and '.join(days)}.{older}\n\n{table.markdown(['design', *headings], body)}"


def _of_loop(row):
    loads = {f"{space} {bits}": n for space in ("shared", "global") for bits, n in row[f"{space}_loads"].items()}
    tensor = sum(n for opcode, n in row["hot_loop"].items() if opcode.startswith(sass.TENSOR))
    math = f"{tensor} wgmma" if tensor else f"{row['ffma_share']:.0%} FFMA"
    text = ", ".join(f"{n} x {what}" for what, n in loads.items()) or "-"
    return [str(row["registers"]), str(row["blocks_per_sm"]), str(row["hot_loop_instructions"]), math, text]


def layouts(*words):
    """The fastest design of each package for the named cases in both layouts. words: cases in NCHW, with _ for spaces."""
    cases = {case.name: case for suite in ("image", "grouped") for case in measured.suites(FOLDER)[suite]}
    names = [word.replace("_", " ") for word in words]
    pairs = [(cases[name], cases[f"{name} channels_last"]) for name in names]
    body = [[name, *(cell for case in pair for cell in _of_layout(case))] for name, pair in zip(names, pairs)]
    headings = [f"{text}, {layout}" for layout in ("NCHW", "channels_last") for text in ("cuDNN", *measured.PACKAGES.values())]
    origin = measured.origin([case for pair in pairs for case in pair])
    return f"Microseconds, by the fastest design. {origin}.\n\n{table.markdown(['case', *headings], body)}"


def _of_layout(case):
    best = [case.best(package) for package in measured.PACKAGES]
    return [table.us(case.vendor.median_ms), *(f"{table.us(r.median_ms)} `{r.design}`" for r in best)]


def hopper(*ops):
    """torch's time over that of both products, in 16 bits: of shapes that both were timed for in one sweep."""
    body, environments = [], []
    for op in ops:
        rows = [row for row in measured.swept(FOLDER, op) if row.torch and row.problem.precision in ("fp16", "bf16")]
        for package, title in measured.PACKAGES.items():
            pairs = [(row, _fastest(row, package)) for row in rows]
            pairs = [(row, pair) for row, pair in pairs if pair]
            environments += [row.environment for row, _ in pairs]
            cells = (
                _compared([pair for row, pair in pairs if (row.problem.flops >= LARGE) == is_large])
                for is_large in (True, False)
            )
            body.append([f"`{op}`", title, *(cell for own in cells for cell in own)])
    headings = [f"{kind}: `{PAIR[0]}`" for kind in ("10 GFLOP and more", "smaller")]
    headings = [text for heading in headings for text in (heading, f"`{PAIR[1]}`", "faster in")]
    return f"{measured.origin_in(environments)}.\n\n{table.markdown(['operation', 'package', *headings], body)}"


def _fastest(row, package):
    """(torch's time over that of each of the PAIR); None unless both were timed."""
    us = {name: [t for design, _, t, _ in row.times.get(LIBRARIES[package], ()) if design == name] for name in PAIR}
    return tuple(row.torch[1] / min(us[name]) for name in PAIR) if all(us.values()) else None


def _compared(pairs):
    means = (f"{statistics.geometric_mean(own):.2f}" for own in zip(*pairs))
    return [*means, f"{sum(after > before for before, after in pairs)} of {len(pairs)}"]


def classes(*words):
    """The rows of conv2d's classes in the table of results.md. words: their names, with _ for spaces."""
    drawn = measured.drawn(FOLDER)
    results = {result.class_.name: result for result in class_table.of_records(drawn)}
    names = [word.replace("_", " ") for word in words]
    body = []
    for name in names:
        sides = [results[name].packages[package] for package in measured.PACKAGES]
        body.append([name, str(results[name].count), *(f"{x:.2f}" for side in sides for x in (side.mean, side.worst))])
    headings = [text for title in measured.PACKAGES.values() for text in (f"{title}: mean", "worst")]
    origin = measured.origin_in([r.environment for r in drawn if r.case.startswith(tuple(names))])
    return f"torch's time over ours. {origin}.\n\n{table.markdown(['class', 'calls', *headings], body)}"
