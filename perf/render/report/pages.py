"""The pages of the report: an index, a page an operation, and the origins of all numbers."""

import functools
import re
from pathlib import Path

from tritonkernels import OPS

from ... import COMMAND
from .. import measured, palette
from . import data, pictures

FOLDER = Path(__file__).parent
# from far behind to far ahead: the least ratio to torch of each of palette.BEHIND_TO_AHEAD
LEAST = (0.0, 0.5, 0.75, 0.9, 0.97, 1.03, 1.15, 1.5, 2.5)


def written(gpus, twin):
    """{file name: HTML} of each page, which loads nothing. `twin(op, design)`: the address of a design's twin page, or None."""
    ops = [op for op in OPS if any(op in gpu.ops for gpu in gpus)]
    render = functools.partial(_render, _environment(), ops=ops, gpus=gpus, twin=twin)
    pages = {f"{op}.html": _of_operation(render, op, [gpu for gpu in gpus if op in gpu.ops], twin) for op in ops}
    return {"index.html": render("index.html", title="report"), **pages, "origins.html": render("origins.html", title="origins")}


def _of_operation(render, op, gpus, twin):
    return render(
        "operation.html",
        title=op,
        op=op,
        gpus=gpus,
        data=data.of_operation(gpus, op, twin, LEAST),
        cases=any(case.op == op for gpu in gpus for case in gpu.cases),
        ladders={gpu.name: pictures.ladders(gpu, op) for gpu in gpus},
        drawn=[picture for gpu in gpus for picture in pictures.of_operation(gpu, op) if picture],
        missing=[(gpu.folder.name, *pair) for gpu in gpus for pair in gpu.missing if pair[0].split()[0] == op],
    )


def _environment():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    texts = {name: (FOLDER / name).read_text() for name in ("page.css", "page.js", "charts.js")}
    environment.globals |= {
        "packages": measured.PACKAGES,
        "command": COMMAND,
        "style": palette.css() + texts["page.css"],
        "code": texts["charts.js"] + texts["page.js"],
    }
    environment.filters |= {"svg": svg, "embedded": data.embedded}
    return environment


def _render(environment, template, **names):
    return environment.get_template(template).render(names)


def svg(picture, name):
    """A picture as an element of a page: without a head of its own, its ids made unique by `name`, grey as the page's."""
    text = picture.svg()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = text.replace(palette.TONE, "var(--faint)")
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{_quoted(picture.data["title"])}"', 1)


def _quoted(text):
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
