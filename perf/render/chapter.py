"""The generated parts of the chapters in docs, between their markers, and the pages of diffs.

`rung`: what a rung of a ladder gains over the one it builds on; `overview`, `code`: all rungs of matmul's; `others`: designs
without a rung; `measured`, `errors`: tables of records; `regimes`, `conv2d_regimes`: maps of designs that are chosen; `noise`:
how far times can be trusted. `inspect` and `trace`, machine code and accesses, need nvcc and minutes.
"""

import difflib
import re

import cuda_reference
import tritonkernels

from .. import ROOT
from ..measure import errors
from . import architecture, measured, noise, overview, packing, table
from .conv2d_map import conv2d_regimes
from .gemv_map import regimes
from .modes import modes

DOCS = ROOT / "docs"
CHAPTERS = tuple(DOCS / f"{op}.md" for op in ("gemm", "gemv", "conv2d", "matmul", "numerics", "measuring", "architecture"))
LADDERS = {"ladder": "gemm", "hopper": "matmul"}  # a suite of every rung: the operation
PAGES = {op: DOCS / op for op in LADDERS.values()}  # of diffs and drawings; nothing there is written by hand
MARKED = re.compile(r"<!-- (\w+): ([^>]*?) -->\n.*?<!-- /\1 -->", re.DOTALL)
LADDER = measured.RESULTS / "h200"


def texts(slow=False):
    """{path: text} of the chapters and of the pages of diffs; slow: also the parts that need nvcc."""
    fillers = {
        "rung": rung,
        "overview": overview.overview,
        "code": overview.code,
        "packed": packing.packed,
        "others": others,
        "measured": speeds,
        "errors": errors_of,
        "regimes": regimes,
        "conv2d_regimes": conv2d_regimes,
        "modes": modes,
        "noise": noise.markdown,
        "imports": lambda op: architecture.drawing(),
    }
    if slow:
        fillers |= {"inspect": inspected, "trace": traced}
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


def rungs(op="gemm"):
    """(the rung before, the rung) of each marker of the ladder in the operation's chapter; the first has none before it."""
    page = DOCS / f"{op}.md"
    for match in MARKED.finditer(page.read_text() if page in CHAPTERS else ""):
        if match[1] == "rung":
            _, before, name = _names(match[2].split())
            yield (before[-1] if before else None), name


def _names(words):
    """(suite, the rungs before, rung) of [suite,] [rungs before,] rung and cases."""
    suite = words[0] if words[0] in LADDERS else "ladder"
    *before, name = [word for word in words if word != suite and not word[0].isdigit()]
    return suite, before, name


def rung(*words):
    """What the rung gains over the last one before that the package has, in the named cases, and links to its files."""
    suite, before, name = _names(words)
    op, cases = LADDERS[suite], [case for case in measured.suites(LADDER)[suite] if case.name.split()[0] in words]
    body = []
    for package, title in measured.PACKAGES.items():
        speeds = [{r.design: f"{r.tflops:.1f}" for r in case.of(package)} for case in cases]
        rows = [[own[x] for x in (*before, name) if x in own][-2:] if name in own else ["-"] for own in speeds]
        body.append([title, *map(" to ".join, rows)])
    body.append(["cuBLAS", *(f"{case.vendor.tflops:.1f}" for case in cases)])
    links = _files(name, op) + ([f"[the difference to `{before[-1]}`]({op}/{name}.md)"] if before else [])
    headings = ["TFLOP/s", *(case.name.split()[0].replace("x", " x ") for case in cases)]
    return f"{table.markdown(headings, body)}\n\n{', '.join(links)}"


def _files(name, op):
    files = [f"tritonkernels/{op}/{name}.py", f"cuda_reference/{op}/{name}.cuh"]
    return [f"[{file}](../{file})" for file in files if (ROOT / file).exists()]


def others(op):
    """A line for each design of the operation that has no rung."""
    rung_names = {name for _, name in rungs()}
    designs = {
        d.name: d for package in (cuda_reference, tritonkernels) for d in package.designs(op) if d.name not in rung_names
    }
    lines = [f"- `{name}`: {design.summary} ({', '.join(_files(name, op))})" for name, design in designs.items()]
    return "\n".join(lines) or "None: every design is a rung above."


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


def speeds(gpu, suite):
    """TFLOP/s of each design in each case of a suite, and relative to the vendor's."""
    cases = measured.suites(measured.RESULTS / gpu)[suite]
    names = list(dict.fromkeys((r.implementation, r.design) for case in cases for r in case.designs))
    columns = [
        {(r.implementation, r.design): f"{r.tflops:.1f} ({r.ratio_to_torch:.2f})" for r in case.designs} for case in cases
    ]
    body = [[measured.PACKAGES[name[0]], name[1], *(own.get(name, "-") for own in columns)] for name in names]
    body.append([measured.vendor_of(cases[0].op), "", *(f"{case.vendor.tflops:.1f}" for case in cases)])
    headings = ["", "design", *(case.name.replace("x", " x ") for case in cases)]
    return f"TFLOP/s, and in brackets relative to the vendor. {measured.origin(cases)}.\n\n{table.markdown(headings, body)}"


def errors_of(file):
    """The tables of `perf errors`, of a file of its records."""
    return errors.chapter(ROOT / file)


def inspected(op, architecture):
    """The table of `perf inspect`."""
    from tritonkernels.target import Target

    from ..offline import inspection

    rows = [row for row in inspection.inspect(op, Target.named(architecture)) if "fault" not in row]
    headings, body = inspection.table_of(rows)
    return table.markdown(headings, body)


def traced(op):
    """The cost of each CUDA rung's accesses, counted in the emulation, with the seed's tile if it has that config."""
    import torch

    from cuda_reference.launch import LIBRARY
    from cuda_reference.trace import trace
    from tritonkernels.gemm import prepare
    from tritonkernels.target import Target

    a, b, c = torch.randn(256, 64), torch.randn(64, 256), torch.randn(256, 256)
    call = prepare(a, b, c, beta=0.5)
    seed = {"BM": 128, "BN": 128, "BK": 8}
    body = []
    for design in LIBRARY.designs(op):
        configs = list(design.configs(call.problem, Target.named("simt")))
        config = next((x for x in configs if seed.items() <= x.items()), configs[0])
        accesses = [x for t in trace(*design.launches(call.problem, config, *call.parts[0])) for x in t.accesses]
        columns = [(space, kind) for space in ("shared", "global") for kind in ("read", "write")]
        body.append([design.name, *(_cost([x for x in accesses if (x.space, x.kind) == column]) for column in columns)])
    headings = ["rung", "shared loads", "shared stores", "global loads", "global stores"]
    return table.markdown(headings, body)


def _cost(accesses):
    """How many requests, and their total cost relative to the lowest possible for the same bytes."""
    requests, units, ideal = (sum(getattr(x, name) for x in accesses) for name in ("requests", "units", "ideal_units"))
    return f"{requests} requests, {units / ideal:.2f} x ideal" if requests else "-"
