"""A chart of records: speed against error, with the bounds. Without records of a GPU there are no speeds: errors alone."""

import importlib.util

from . import charts
from .picture import STYLE

SUFFIXES = (".png", ".svg")
ERROR = "error of the worst element, relative to its sum of |products|"
LEAST = 2.0**-30  # 0 cannot be drawn on a logarithmic axis


def available():
    return importlib.util.find_spec("matplotlib") is not None


def speed_against_error(records, path):
    """Draw the correct records to `path`, whose suffix is one of SUFFIXES. Needs matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    right = [r for r in records if r.ok and r.error is not None]
    timed = [r for r in right if r.tflops is not None]
    with matplotlib.rc_context(STYLE):
        figure = Figure()
        if timed:
            points = [(f"{r.implementation} {r.design}", r.precision, r.tflops, max(r.error, LEAST)) for r in timed]
            bounds = [(r.precision, r.tflops, r.bound) for r in timed]
            label = f"TFLOP/s on {timed[0].target}, numbers at the points: N"
            charts.scatter(figure, "Speed against error", "", points, label, ERROR, bounds=bounds)
            for r, (*_, x, y) in zip(timed, points):
                offset = {"textcoords": "offset points", "xytext": (5, 3), "fontsize": 7}
                figure.axes[0].annotate(str(r.problem.get("n", "")), (x, y), **offset)
        else:
            rows = {}
            for r in (r for r in right if not r.is_peer):  # there are no marks for them
                rows.setdefault(r.precision, {}).setdefault(r.implementation, []).append((max(r.error, LEAST), r.bound))
            charts.errors(figure, "Errors; no times without a GPU", "", rows, ERROR)
        figure.savefig(path)
