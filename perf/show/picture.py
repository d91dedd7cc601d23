"""Pictures as SVG by matplotlib, with a check whether a file is out of date.

A picture is data and the function that draws them. The file contains a fingerprint of both, so that a stale file is noticed
without matplotlib, on whose version the file's bytes depend. Text and lines are grey on a transparent background, which is
legible on white and on black.
"""

import hashlib
import inspect
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import palette
from .palette import TONE

STYLE = {
    "svg.hashsalt": "tritonkernels",  # the same names of elements in every run
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans"],  # or the reader's default: no list of ten fonts in every text
    "font.size": 9,
    "axes.titlesize": 9,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), TONE),
}


@dataclass(frozen=True)
class Picture:
    draw: Callable[..., None]  # draw(figure, **data)
    data: dict[str, Any]  # JSON types only

    @property
    def fingerprint(self):
        sources = map(inspect.getsource, (palette, inspect.getmodule(self.draw)))  # with what the function calls
        return hashlib.sha256("".join((*sources, self.draw.__name__, json.dumps(self.data))).encode()).hexdigest()

    def stale(self, path):
        """Whether the file is missing, or drawn from other data or by other code."""
        return not path.exists() or self.fingerprint not in path.read_text()

    def svg(self):
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        file = io.StringIO()
        about = {"Description": f"data {self.fingerprint}", "Creator": None, "Date": None}
        with matplotlib.rc_context(STYLE):
            figure = Figure()
            FigureCanvasSVG(figure)  # in whose units of text the layout is made
            self.draw(figure, **self.data)
            if layout := figure.get_layout_engine():  # made here, since savefig would draw all of the figure for it, then again
                layout.execute(figure)
                figure.set_layout_engine(None)
            figure.savefig(file, format="svg", transparent=True, metadata=about)
        return light("".join(f"{line.strip()}\n" for line in file.getvalue().splitlines()))


PLACES = re.compile(r'(?<= )(?:d|x|y|transform)="[^"]*"')
STYLES = re.compile(r' style="[^"]*"')
MARKS = re.compile(r'<g( clip-path="[^"]*")?>\n((?:<use [^>]*? style="[^"]*"/>\n)+)</g>')


def light(svg):
    """The same picture in half the bytes: two digits after the point of every place, and the style of equal marks once."""

    def grouped(match):
        styles = set(STYLES.findall(match[2]))
        return f"<g{match[1] or ''}{styles.pop()}>\n{STYLES.sub('', match[2])}</g>" if len(styles) == 1 else match[0]

    def rounded(match):
        return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), match[0])

    return MARKS.sub(grouped, PLACES.sub(rounded, svg))
