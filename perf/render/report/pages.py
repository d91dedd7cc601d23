"""The pages of the report: an index, a page an operation, and the origins of all numbers."""

import re
from pathlib import Path

from tritonkernels import OPS

from ... import COMMAND
from ...measure import class_table, measured
from ...measure.models import table as models
from ...show import palette
from . import data, pictures

FOLDER = Path(__file__).parent
# from far behind to far ahead: the least ratio to torch of each of palette.BEHIND_TO_AHEAD
LEAST = (0.0, 0.5, 0.75, 0.9, 0.97, 1.03, 1.15, 1.5, 2.5)


def written(gpus, twin, measuring):
    """{file name: HTML} of each page, which loads nothing.

    twin(op, design)  the address of a design's twin page, or None
    measuring         the address of the page on how times are taken, or None
    """
    ops = [op for op in OPS if any(op in gpu.ops for gpu in gpus)]
    environment = _environment(ops=ops, twin=twin, measuring=measuring)
    names = {"index": _of_all(gpus, twin), **{op: _of_operation(gpus, op, twin) for op in ops}, "origins": {"gpus": gpus}}
    kinds = dict.fromkeys(ops, "operation")
    return {
        f"{page}.html": environment.get_template(f"{kinds.get(page, page)}.html").render(page=page, **own)
        for page, own in names.items()
    }


def _of_all(gpus, twin):
    """The names in the template of the index."""
    judged = [gpu for gpu in gpus if gpu.classes]
    return {
        "gpus": gpus,
        "judged": judged,
        "classes": class_table,
        "models": models,
        "data": data.of_classes(judged, twin, LEAST),
    }


def _of_operation(gpus, op, twin):
    own = [gpu for gpu in gpus if op in gpu.ops]
    drawn = [picture for gpu in own for picture in pictures.of_operation(gpu, op) if picture]
    return {
        "gpus": own,
        "data": data.of_operation(own, op, twin, LEAST),
        "ladders": [pictures.ladders(gpu, op) for gpu in own],
        "drawn": sorted(drawn, key=lambda picture: picture.data["title"]),  # GPUs side by side
        "missing": [f"{gpu.folder.name}: {what}: {why}" for gpu in own for what, why in gpu.missing if what.split()[0] == op],
    }


def _environment(**names):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    style, charts, script = ((FOLDER / name).read_text() for name in ("page.css", "charts.js", "page.js"))
    own = {"packages": measured.PACKAGES, "command": COMMAND, "style": palette.css() + style, "code": charts + script}
    environment.globals |= own | names
    environment.filters |= {"svg": svg, "embedded": data.embedded}
    return environment


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
