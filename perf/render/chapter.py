"""The generated parts of the chapters in docs, between their markers, and the pages of diffs.

`ladder`: the speed of every rung in a few cases; `rung`, `step`: what one gains over the one before; `overview`, `code`: all
rungs of matmul's; `loops`, `layouts`, `hopper`, `classes`: conv2d's; `errors`: tables of records; `regimes`, `conv2d_regimes`:
maps of designs that are chosen; `noise`: how far times can be trusted. `inspect` and `trace`, machine code and accesses, need
nvcc and minutes (compiled.py).
"""

import difflib
import re

from .. import ROOT
from ..measure import errors, measured
from ..show import table
from . import architecture, compiled, conv_tables, ladder, noise, overview, packing
from .conv2d_map import conv2d_regimes
from .gemv_map import regimes
from .modes import modes

DOCS = ROOT / "docs"
CHAPTERS = tuple(
    DOCS / f"{op}.md" for op in ("gemm", "gemv", "conv2d", "conv_calls", "matmul", "numerics", "measuring", "architecture")
)
LADDERS = {
    "ladder": "gemm",
    "hopper": "matmul",
    "image": "conv2d",
    "grouped": "conv2d",
    "resnet50": "conv2d",
}  # suites: the operation
PAGES = {op: DOCS / op for op in LADDERS.values()}  # of diffs and drawings; nothing there is written by hand
MARKED = re.compile(r"<!-- (\w+): ([^>]*?) -->\n.*?<!-- /\1 -->", re.DOTALL)
LADDER = measured.RESULTS / "h200"


def texts(slow=False):
    """{path: text} of the chapters and of the pages of diffs; slow: also the parts that need nvcc."""
    fillers = {
        "rung": rung,
        "step": step,
        "ladder": ladder.markdown,
        "overview": overview.overview,
        "code": overview.code,
        "counted": overview.counted,
        "loops": conv_tables.loops,
        "layouts": conv_tables.layouts,
        "hopper": conv_tables.hopper,
        "classes": conv_tables.classes,
        "packed": packing.packed,
        "errors": errors_of,
        "regimes": regimes,
        "conv2d_regimes": conv2d_regimes,
        "modes": modes,
        "noise": noise.markdown,
        "imports": lambda op: architecture.drawing(),
    }
    if slow:
        fillers |= {"inspect": compiled.inspected, "trace": compiled.traced}
    pages = {
        folder / f"{name}.md": diff(before, name, op) for op, folder in PAGES.items() for before, name in rungs(op) if before
    }
    return {path: filled(path.read_text(), fillers) for path in CHAPTERS} | pages


def filled(text, fillers):
    """The chapter with each marked part generated again by the filler of its kind; parts of other kinds are kept."""

    def fill(match):
        kind, arguments = match[1], match[2]
        return (
            f"<!-- {kind}: {arguments} -->\n{fillers[kind](*arguments.split())}\n<!-- /{kind} -->"
            if kind in fillers
            else match[0]
        )

    return MARKED.sub(fill, text)


def has_other_code(text):
    """Whether a part that needs nvcc is of other sources than today's."""
    return not all(compiled.is_current(match[1], match[2], match[0]) for match in MARKED.finditer(text))


def rungs(op="gemm"):
    """(the rung before, the rung) of each marker of the ladder in the operation's chapter; the first has none before it."""
    page = DOCS / f"{op}.md"
    for match in MARKED.finditer(page.read_text() if page in CHAPTERS else ""):
        if match[1] in ("rung", "step"):
            _, before, name = _names(match[2].split())
            yield (before[-1] if before else None), name


def _names(words):
    """(suite, the rungs before, rung) of [suite,] [rungs before,] rung and cases."""
    suite, words = (words[0], words[1:]) if words[0] in LADDERS else ("ladder", words)
    *before, name = [word for word in words if not word[0].isdigit()]
    return suite, before, name


def rung(*words):
    """What the rung gains over the last one before that the package has, in the named cases, and links to its files."""
    suite, before, name = _names(words)
    op, found = LADDERS[suite], _found(suite, words)
    body = [[title, *cells] for title, cells in _gains(found.values(), before, name).items()]
    body.append([measured.vendor_of(op), *(f"{case.vendor.tflops:.1f}" for case in found.values())])
    headings = ["TFLOP/s", *(short.replace("x", " x ") for short in found)]
    return f"{table.markdown(headings, body)}\n\n{_links(op, before, name)}"


def step(*words):
    """The same in a sentence, for one case."""
    suite, before, name = _names(words)
    op, ((short, case),) = LADDERS[suite], _found(suite, words).items()
    gains = [f"{title} {cell}" for title, (cell,) in _gains([case], before, name).items()]
    gains.append(f"{measured.vendor_of(op)} {case.vendor.tflops:.1f}")
    return f"TFLOP/s at {short.replace('x', ' x ')}: {', '.join(gains)}. {_links(op, before, name)}"


def _found(suite, words):
    """{the name that is shown: the case} of those that the words name."""
    found = {_short(case, words): case for case in measured.suites(LADDER)[suite]}
    return {short: case for short, case in found.items() if short}


def _gains(cases, before, name):
    """{title of a package: the text of each case}"""
    found = {}
    for package, title in measured.PACKAGES.items():
        speeds = [{r.design: r.tflops for r in case.of(package)} for case in cases]
        rows = [[own[x] for x in (*before, name) if x in own][-2:] if name in own else [] for own in speeds]
        found[title] = list(map(_gain, rows))
    return found


def _links(op, before, name):
    return ", ".join(_files(name, op) + ([f"[the difference to `{before[-1]}`]({op}/{name}.md)"] if before else []))


def _short(case, words):
    """The case's name if one of the words is that, with _ for spaces, or the first part of it; else None."""
    names = (case.name, case.name.split()[0])
    return next((name for name in names if name.replace(" ", "_") in words), None)


def _gain(tflops):
    """The speeds of one rung, or of two and what the second gains."""
    text = " to ".join(f"{x:.1f}" for x in tflops)
    return f"{text} ({tflops[1] / tflops[0] - 1:+.0%})" if len(tflops) == 2 else text or "-"


def _files(name, op):
    files = [f"tritonkernels/{op}/{name}.py", f"cuda_reference/{op}/{name}.cuh"]
    return [f"[{file}](../{file})" for file in files if (ROOT / file).exists()]


def diff(before, after, op="gemm"):
    """The page of the unified diff of two rungs."""
    body = "\n".join(difference(*(ROOT / f"cuda_reference/{op}/{name}.cuh" for name in (before, after))))
    files = " to ".join(f"[{name}.cuh](../../cuda_reference/{op}/{name}.cuh)" for name in (before, after))
    return f"# From {before} to {after}\n\n{files}; [the chapter](../{op}.md#{after}).\n\n```diff\n{body}\n```\n"


def difference(before, after):
    """The lines of the unified diff of two files."""
    texts = (file.read_text().splitlines() for file in (before, after))
    lines = difflib.unified_diff(*texts, before.name, after.name, lineterm="", n=2)
    return [line.rstrip() for line in lines]


def errors_of(file):
    """The tables of `perf errors`, of a file of its records."""
    return errors.chapter(ROOT / file)
