"""A chart of records, speed against error, with a point for each mode of each implementation and case.

Without records of a GPU there are no speeds: the x axis then has the modes.
"""

import importlib.util

SUFFIXES = (".png", ".svg")
MARKERS = {"triton": "o", "cuda": "s", "torch": "^"}


def available():
    return importlib.util.find_spec("matplotlib") is not None


def speed_against_error(records, path):
    """Draw the correct records to `path`, whose suffix is one of SUFFIXES. Needs matplotlib."""
    from matplotlib.figure import Figure

    right = [r for r in records if r.ok and r.error is not None]
    timed = [r for r in right if r.tflops is not None]
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot()
    modes = list(dict.fromkeys(r.precision for r in right))
    for (mode, implementation, design), group in _groups(timed or right).items():
        errors = [max(r.error, 2.0**-30) for r in group]  # 0 cannot be drawn on a logarithmic axis
        at = [r.tflops for r in group] if timed else [modes.index(mode)] * len(group)
        label = f"{mode}: {implementation} {design}"
        axes.plot(at, errors, MARKERS[implementation], color=f"C{modes.index(mode)}", label=label, alpha=0.8)
        for r, x, y in zip(group, at, errors) if timed else ():
            axes.annotate(str(r.problem.get("n", "")), (x, y), textcoords="offset points", xytext=(5, 3), fontsize=7)
    axes.set_yscale("log")
    axes.set_ylabel("error of the worst element, relative to its sum of |products|")
    if timed:
        axes.set_xscale("log")
        axes.set_xlabel(f"TFLOP/s on {timed[0].target}, numbers at the points: N")
    else:
        axes.set_xticks(range(len(modes)), modes)
        axes.set_xlabel("mode; error only, no times without a GPU")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path)


def _groups(records):
    """Records by mode, implementation and design, in order."""
    groups = {}
    for r in records:
        groups.setdefault((r.precision, r.implementation, r.design), []).append(r)
    return groups
