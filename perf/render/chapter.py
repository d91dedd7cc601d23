"""python -m perf chapter: the generated parts of the chapters in docs, so that text and code cannot drift apart.

Between its markers stand the diff from each rung to the one it grew out of, and the figures of `perf inspect` and
of the access trace, measured records and errors, the modes of numerics, and the maps of gemv's and conv2d's designs. --check
covers all but the figures (they need nvcc and a minute).
"""

import difflib
import os
import re

from .. import ROOT
from ..measure import errors, records
from . import plot
from .conv2d_map import conv2d_regimes
from .drawings import DRAWINGS
from .gemv_map import regimes
from .modes import modes

CHAPTER = ROOT / "docs" / "gemm.md"
CHAPTERS = (CHAPTER, *(CHAPTER.with_name(f"{name}.md") for name in ("gemv", "conv2d", "matmul", "numerics")))
MARKED = re.compile(r"<!-- (\w+): ([^>]*?) -->\n.*?<!-- /\1 -->", re.DOTALL)


def add_arguments(parser):
    parser.add_argument("--check", action="store_true", help="exit with 1 if drawings or diffs are out of date; write nothing")


def main(options, parser):
    quick = {"diff": diff, "measured": measured, "errors": errors_of, "modes": modes}
    quick |= {"regimes": regimes, "conv2d_regimes": conv2d_regimes}
    if options.check:
        stale = [*_stale_drawings(), *(c for c in CHAPTERS if filled(c.read_text(), quick) != c.read_text())]
        print("\n".join(f"out of date: {path.relative_to(ROOT)}" for path in stale) or "up to date")
        return 1 if stale else 0
    stale = _stale_drawings()
    if stale and not plot.available():
        parser.error("drawings need matplotlib: pip install 'tritonkernels[plot]'")
    for path, picture in stale.items():
        path.write_text(picture.svg())
    fillers = quick | {"inspect": inspected, "trace": traced}
    for chapter in CHAPTERS:
        chapter.write_text(filled(chapter.read_text(), fillers))
    return 0


def filled(text, fillers):
    """The chapter with each marked part made anew by the filler of its kind; parts of other kinds stay as they are."""

    def fill(match):
        kind, what = match[1], match[2]
        return f"<!-- {kind}: {what} -->\n{fillers[kind](*what.split())}\n<!-- /{kind} -->" if kind in fillers else match[0]

    return MARKED.sub(fill, text)


def _stale_drawings():
    """{path: Picture} of those to be drawn again: the current ones stay, whichever matplotlib drew them."""
    paths = {CHAPTER.parent / "gemm" / f"{name}.svg": picture for name, picture in DRAWINGS.items()}
    return {path: picture for path, picture in paths.items() if picture.stale(path)}


def diff(before, after):
    """The unified diff of two rungs, to be unfolded."""
    texts = [(ROOT / "cuda_reference/gemm" / f"{name}.cuh").read_text().splitlines() for name in (before, after)]
    lines = difflib.unified_diff(*texts, f"{before}.cuh", f"{after}.cuh", lineterm="", n=1)
    body = "\n".join(line.rstrip() for line in lines)
    return f"<details><summary>diff {before}.cuh {after}.cuh</summary>\n\n```diff\n{body}\n```\n\n</details>"


def measured(file):
    """TFLOP/s of each design in each case of a file of records, and how many times torch's that is."""
    from . import table

    rows = [r for r in records.read_rows(ROOT / file) if r["op"] == "gemm"]
    cases = list(dict.fromkeys(r["case"] for r in rows))
    found = {(r["implementation"], r["design"], r["case"]): f"{r['tflops']:.1f} ({r['ratio_to_torch']:.2f})" for r in rows}
    designs = dict.fromkeys((r["implementation"], r["design"]) for r in rows)
    headings = ["implementation", "design", *(case.replace("x", " x ") for case in cases)]
    where = rows[0]["environment"]
    told = f"{where['device']}, {where['date'][:10]}, torch {where['torch']}, triton {where['triton']}, CUDA {where['cuda']}"
    body = [[*design, *(found.get((*design, case), "-") for case in cases)] for design in designs]
    return f"{told}: TFLOP/s, and in brackets times torch.\n\n{table.markdown(headings, body)}"


def errors_of(file):
    """The tables of `perf errors`, of a file of its records."""
    return errors.chapter(ROOT / file)


def inspected(op, architecture):
    """The table of `perf inspect`."""
    os.environ["TRITONKERNELS_BACKEND"] = "gpu"
    from tritonkernels.target import Target

    from ..offline import inspection
    from . import table

    rows = [row for row in inspection.inspect(op, Target.named(architecture)) if "fault" not in row]
    headings, body = inspection.table_of(rows)
    return table.markdown(headings, body)


def traced(op):
    """Per rung of the CUDA ladder: what its accesses cost, counted in the emulation, with the seed's tile where it has one."""
    import torch

    from cuda_reference.launch import LIBRARY
    from cuda_reference.trace import trace
    from tritonkernels.gemm import prepare
    from tritonkernels.target import Target

    from . import table

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
    """How many requests, and how much they cost in all against the least that the same bytes could."""
    requests, units, ideal = (sum(getattr(x, name) for x in accesses) for name in ("requests", "units", "ideal_units"))
    return f"{requests} requests, {units / ideal:.2f} x ideal" if requests else "-"
