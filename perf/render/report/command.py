"""python -m perf report: one self-contained HTML page of the records: heat maps, ladders, rooflines, errors, losses and wins.

It is made from the records alone, without a GPU and without a network, and can be opened from disk, mailed or printed. DIR has
records of one GPU, as `perf compare --json`, `sweep` and `campaign` write them, or a folder of them for each GPU.

Exit status: 2 for bad arguments, and if there are no records.
"""

import importlib.util
import re
from pathlib import Path

from ... import COMMAND, ROOT
from ...arguments import writable
from ...gate import processes
from .. import measured
from ..picture import TONE
from . import gather, pictures

FOLDER = Path(__file__).parent
NEEDED = ("jinja2", "matplotlib", "pygments")


def add_arguments(parser):
    parser.add_argument(
        "--records", type=Path, default=measured.RESULTS, metavar="DIR", help="default: the repository's, perf/results"
    )
    parser.add_argument("--out", type=writable, default="report.html", metavar="FILE", help="default: %(default)s")


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
    processes.replace(options.out, html(gpus))
    cases, behind = (sum(map(count, gpus)) for count in (lambda gpu: len(gpu.cases), lambda gpu: len(gpu.slower())))
    print(f"{options.out}: {cases} cases, {behind} results behind torch")
    return 0


def html(gpus):
    """The page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from . import highlight  # here, as it needs pygments

    environment = Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"us": measured.us, "svg": svg, "source": highlight.source, "listing": highlight.listing}
    texts = {name: (FOLDER / f"page.{name}").read_text() for name in ("css", "js")}
    return environment.get_template("page.html").render(
        gpus=gpus,
        sources=gather.sources(gpus),
        home=gather.home,
        pictures=pictures,
        packages=measured.PACKAGES,
        least=gather.COLOURS,
        root=ROOT,
        command=COMMAND,
        **texts,
    )


def svg(picture, name):
    """A picture as an element of the page: without a head of its own, its ids made unique by `name`, grey as the page's."""
    text = picture.svg()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = text.replace(TONE, "var(--faint)")
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{_quoted(picture.data["title"])}"', 1)


def _quoted(text):
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
