"""python -m perf docs: writes the generated parts of the docs, from records and designs: tables, diffs, maps, charts, drawings.

--check only lists what is out of date. Pictures are compared by the data that they show, which needs no matplotlib.
"""

import os
import sys

from .. import ROOT
from ..fit import choice_page
from ..gate import shown as gate
from ..measure import measured
from ..show import plot
from . import (
    chapter,
    conv_drawings,
    designs,
    drawings,
    figures,
    hopper_drawings,
    ladder,
    provenance,
    results,
    support,
    torch_page,
)

DOCS = chapter.DOCS
CHARTS = DOCS / "charts"
README = ROOT / "README.md"
OTHER_CODE = "machine code of other sources than today's (perf docs --compile)"


def add_arguments(parser):
    parser.add_argument("--check", action="store_true", help="exit with 1 if something is out of date; write nothing")
    parser.add_argument(
        "--compile", action="store_true", help="also the parts that need nvcc and some minutes: machine code and accesses"
    )


def main(options, parser):
    if options.compile:
        os.environ["TRITONKERNELS_BACKEND"] = "gpu"  # before any kernel is imported: interpreted kernels cannot be compiled
    texts, pictures = _texts(options.compile), _pictures()
    changed, drawn, left_over = _stale_texts(texts), _stale_pictures(pictures), _leftovers(texts, pictures)
    of_other_code = [path for path, text in texts.items() if chapter.has_other_code(text)]
    if options.check:
        stale = sorted({*changed, *drawn, *left_over})
        lines = [f"out of date: {path.relative_to(ROOT)}" for path in stale]
        lines += [f"{OTHER_CODE}: {path.relative_to(ROOT)}" for path in of_other_code]
        print("\n".join(lines) or "up to date")
        return 1 if lines else 0
    if drawn and not plot.available():
        parser.error("pictures need matplotlib: pip install 'tritonkernels[plot]'")
    written = changed | {path: picture.svg() for path, picture in drawn.items()}
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in left_over:
        path.unlink()
    for path in of_other_code:
        print(f"{OTHER_CODE}: {path.relative_to(ROOT)}", file=sys.stderr)
    return 1 if of_other_code else 0


def _texts(slow=False):
    pages = {"choice": choice_page, "designs": designs, "results": results, "torch": torch_page}
    fillers = {
        README: {"ladder": ladder.of_readme, "gate": gate.in_short, "speed": results.of_readme},
        DOCS / "running.md": {"support": support.markdown, "gate": gate.markdown},
        measured.RESULTS / "README.md": {"files": provenance.files, "sweeps": provenance.sweeps},
    }
    readmes = {path: chapter.filled(path.read_text(), own) for path, own in fillers.items()}
    return {DOCS / f"{name}.md": page.markdown() for name, page in pages.items()} | chapter.texts(slow) | readmes


def _pictures():
    drawn = {
        chapter.PAGES[op] / f"{name}.svg": picture
        for op, of in (("gemm", drawings), ("matmul", hopper_drawings), ("conv2d", conv_drawings))
        for name, picture in of.DRAWINGS.items()
    }
    pictures = figures.of_docs(chapter.LADDER)
    charts = {CHARTS / chapter.LADDER.name / f"{name}.svg": picture for name, picture in pictures.items()}
    of_gpus = {
        CHARTS / folder.name / f"{name}.svg": picture(folder)
        for folder in measured.gpus()
        for name, picture in results.CHARTS.items()
    }
    return drawn | charts | {path: picture for path, picture in of_gpus.items() if picture}


def _stale_texts(texts):
    """{path: the current text of a stale file}"""
    return {path: text for path, text in texts.items() if not path.exists() or path.read_text() != text}


def _stale_pictures(pictures):
    """{path: Picture} of those to be drawn again; current ones are kept, whichever matplotlib drew them."""
    return {path: picture for path, picture in pictures.items() if picture.stale(path)}


def _leftovers(texts, pictures):
    """Files of earlier runs that are no longer generated."""
    files = {path for folder in (*chapter.PAGES.values(), CHARTS) for path in folder.rglob("*.*")}
    return files - texts.keys() - pictures.keys()
