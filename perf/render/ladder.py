"""An operation's rungs with their speed in a few cases of a suite: the first table of its chapter, and of the README."""

from tritonkernels.launch import LIBRARY

from ..measure import kernels, measured
from ..show import table

CHAPTER = "docs/gemm.md"  # that the README's names lead to


def markdown(gpu, suite, *words, link="`{0}`"):
    """A row for each of the operation's own designs. words: the names of cases up to a comma, with _ for spaces."""
    cases = {}
    for case in measured.suites(measured.RESULTS / gpu)[suite]:
        cases.setdefault(case.name.partition(",")[0].replace(" ", "_"), case)
    cases = [cases[word] for word in words]
    op, body = cases[0].op, []
    for rung in LIBRARY.operation(op).own:
        cells = [_cell(case, rung.name) for case in cases]
        if any(cell != _NONE for cell in cells):
            body.append([link.format(rung.name), rung.summary, *cells])
    vendor = measured.vendor_of(op)
    body.append([vendor, "", *(f"{table.us(case.vendor.median_ms)} us" for case in cases)])
    headings = ["rung", "what it does", *(case.name.replace("x", " x ") for case in cases)]
    own = [vars(r) for case in cases for r in case.designs if "." not in r.design]
    older = "" if all(map(kernels.is_current, own)) else " Kernels have changed since."
    caption = f"Speed relative to {vendor}, Triton / CUDA. {measured.origin(cases)}.{older}"
    return f"{caption}\n\n{table.markdown(headings, body)}"


def of_readme(*words):
    return markdown(*words, link=f"[{{0}}]({CHAPTER}#{{0}})")


_NONE = "- / -"


def _cell(case, design):
    speeds = [{r.design: f"{r.ratio_to_torch:.2f}" for r in case.of(package)} for package in measured.PACKAGES]
    return " / ".join(own.get(design, "-") for own in speeds)
