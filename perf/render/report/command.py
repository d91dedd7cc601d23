"""python -m perf report: HTML pages of the records: classes and models first, then a page an operation with every result.

They are made from the records alone, without a GPU and without a network, and can be opened from disk: begin with index.html.
The folder of records is of one GPU, as `perf compare --json`, `sweep` and `campaign` write them, or has a folder for each GPU.

Exit status: 2 for bad arguments, and if there are no records.
"""

import importlib.util
import os
from pathlib import Path

from ... import COMMAND, ROOT, processes
from ...arguments import folder
from ...measure import measured
from . import gather, pages

NEEDED = ("jinja2", "matplotlib")


def add_arguments(parser):
    parser.add_argument(
        "--records", type=Path, default=measured.RESULTS, metavar="DIR", help="default: the repository's, perf/results"
    )
    parser.add_argument("--out", type=folder, default="build/report", metavar="DIR", help="default: %(default)s")
    parser.add_argument(
        "--twins", type=Path, metavar="DIR", help="twin pages that designs link to; default: twins next to --out"
    )
    parser.add_argument("--docs", metavar="PATTERN", help="as for perf twins: where the docs are, seen from --out")


def main(options, parser):
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        parser.error(f"the report needs {', '.join(missing)}: pip install 'tritonkernels[report]'")
    try:
        gpus = gather.gpus(options.records) if options.records.exists() else []
    except (OSError, ValueError, LookupError, TypeError) as error:
        parser.error(f"cannot read the records in {options.records}: {type(error).__name__}: {error}")
    if not gpus:
        remedy = f"`{COMMAND} compare --json DIR/FILE.json` on a GPU writes them, and --records DIR names their folder"
        parser.error(f"no timed records in {options.records}: {remedy}")
    options.out.mkdir(parents=True, exist_ok=True)
    twin = _twin(options.twins or options.out.absolute().parent / "twins", options.out)
    for name, html in pages.written(gpus, twin, _measuring(options)).items():
        processes.replace(options.out / name, html)
    cases = [case for gpu in gpus for case in gpu.cases]
    behind = sum(r.verdict == "behind" for case in cases for r in case.results.values())
    print(f"{options.out / 'index.html'}: {len(cases)} cases, {behind} results behind torch")
    return 0


def _measuring(options):
    """The address of the page on how times are taken; None where there is none, as with an installed package."""
    page = ROOT / "docs/measuring.md"
    if options.docs:
        return options.docs.format(page.stem)
    return os.path.relpath(page, options.out).replace(os.sep, "/") if page.exists() else None


def _twin(twins, out):
    """The function that says which address a design's twin page has in the pages of `out`; None where there is no such page."""

    def twin(op, design):
        page = twins / "{}/{}.html".format(*gather.home(op, design))
        return os.path.relpath(page, out).replace(os.sep, "/") if page.exists() else None

    return twin
