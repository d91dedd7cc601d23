"""python -m perf twins: a page for each design: its Triton and CUDA files side by side, with what they share, and their SASS.

The pages are static HTML without scripts, made from the sources and records alone: DIR/index.html, and DIR/OP/DESIGN.html for
each design. Parts that a file imports or includes unfold at the line that names them.

Exit status: 2 for bad arguments.
"""

import ast
import importlib.util
import os
from pathlib import Path

from ... import COMMAND
from ...arguments import folder
from ...measure import measured
from ...show import palette, table
from .. import chapter
from . import pages

HERE = Path(__file__).parent
NEEDED = ("jinja2", "pygments")
TITLES = {"triton": "Triton", "cuda": "CUDA", "cuda-launch": "CUDA, configs and launch"}


def add_arguments(parser):
    parser.add_argument("--out", type=folder, default="build/twins", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--design", nargs="+", metavar="OP/NAME", help="write the pages of these only, and no index")
    parser.add_argument(
        "--docs",
        metavar="PATTERN",
        help="where the page of a chapter is, seen from DIR, with {} for its name: ../{}.html; default: its Markdown file",
    )


def main(options, parser):
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        parser.error(f"twin pages need {', '.join(missing)}: pip install 'tritonkernels[report]'")
    twins = {twin.address.removesuffix(".html"): twin for twin in pages.every()}
    unknown = set(options.design or ()) - twins.keys()
    if unknown:
        parser.error(f"no design {', '.join(sorted(unknown))}: choose from {', '.join(twins)}")
    docs = options.docs or f"{os.path.relpath(chapter.DOCS, options.out)}/{{}}.md"
    texts = {twins[name].address: page(twins[name], docs) for name in options.design or twins}
    if not options.design:
        texts["index.html"] = _template("index.html").render(ops=pages.by_operation(), designs=docs.format("designs"))
    for name, text in texts.items():
        path = options.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(f"{options.out}: {len(texts)} pages, the largest of {max(map(len, texts.values())) // 1000} kB")
    return 0


def page(twin, docs):
    """The HTML of a twin's page; docs: where chapters are, seen from the folder of all pages."""
    from . import highlight, machine, sources  # here, as they need pygments

    name, anchor = twin.chapter
    return _template("page.html").render(
        twin=twin,
        title=f"{twin.op} {twin.rung.name}",
        opening=opening(twin),
        chapter=f"../{docs.format(name)}{anchor}",
        panes=sources.panes(twin),
        columns=[[anchor for anchor in own if anchor in twin.files] for own in (("triton",), ("cuda", "cuda-launch"))],
        titles=TITLES,
        gpus=machine.gpus(twin),
        differences=_differences(twin, highlight),
        packages={package: title for package, title in measured.PACKAGES.items() if package in twin.files},
        vendor=measured.vendor_of(twin.op),
        listing=highlight.listing,
        zip=zip,
        command=COMMAND,
    )


def opening(twin):
    """The first paragraph of its Triton file, or else of its CUDA file."""
    file = next(iter(twin.files.values()))
    if file.suffix == ".py":
        text = ast.get_docstring(ast.parse(file.read_text()))
    else:
        text = file.read_text().replace("\n// ", " ").removeprefix("// ").replace("\n//", "\n\n")
    return " ".join(text.partition("\n\n")[0].split())


def _differences(twin, highlight):
    """{anchor: (the design that it builds on, lines of HTML)} in both languages."""
    both = {anchor: (twin.before_with(anchor), file) for anchor, file in twin.files.items()}
    return {
        anchor: (before, highlight.difference(chapter.difference(before.files[anchor], file)))
        for anchor, (before, file) in both.items()
        if before
    }


def _template(name):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["us"] = table.us
    environment.globals["css"] = palette.css() + (HERE / "page.css").read_text()
    return environment.get_template(name)
