"""Charts of records: what a `Picture` draws. Right of 1, or above it, means faster than the vendor library."""

import itertools
import math
import textwrap

from .palette import CUDA, SERIES, TONE, TRITON, VENDOR
from .table import three_digits

TALLEST = 0.8  # of its width: on a screen 1100 pixels wide a picture has at most 880
STRIP, LETTER = 580, 4  # points: the width of a strip, and of a letter of the names on it
FEWEST = 12  # letters of a name, room or not
NOTHING = {"ratios": ()}  # of a package that a class has no rows of
MARKERS = "os^DvPX*"
AT_ROW = ("axes fraction", "data")
PACKAGES = {
    "triton": ("Triton", "o", TRITON, -0.17),
    "cuda": ("CUDA", "s", CUDA, 0.17),
}  # name, marker, colour, shift


def strips(figure, title, origin, rows, label):
    """A strip of dots per class, a dot per case. The class's mean is a tick and a number, and its worst case has its name.

    The bar of a class is its goal: no dot left of it, the mean at its right end or beyond.
    rows: {class: {"goal": [mean, least], package: {"ratios": [...], "mean": ..., "worst": name of the case, "untimed": count}}}
    """
    axes = _rows_of(figure, title, origin, rows, 0.2, width=11)
    axes.tick_params(axis="y", length=0, labelsize=8)
    least, mean = zip(*(row["goal"][::-1] for row in rows.values()))
    widths = [right - left for left, right in zip(least, mean)]
    axes.barh(range(len(rows)), widths, 0.8, least, color=VENDOR, alpha=0.3, linewidth=0, label="goal")
    for column, (package, (name, marker, colour, shift)) in enumerate(PACKAGES.items()):
        place = {"xycoords": AT_ROW, "ha": "right", "va": "center", "fontsize": 8, "color": colour}
        axes.annotate(name, (1.05 + 0.055 * column, -1), **place)
        own = [(i, row["goal"][0], row[package]) for i, row in enumerate(rows.values()) if package in row]
        for i, goal, found in own:
            number = f"{found['mean']:.2f}" if found["ratios"] else "-"
            weight = "bold" if found["ratios"] and found["mean"] >= goal else "normal"
            axes.annotate(number, (1.05 + 0.055 * column, i), weight=weight, **place)
        dots = [(x, i + shift) for i, _, found in own for x in found["ratios"]]
        means = [(found["mean"], i + shift) for i, _, found in own if found["ratios"]]
        axes.plot(*zip(*dots), marker, color=colour, markersize=3.2, alpha=0.75, markeredgewidth=0, label=name)
        axes.plot(*zip(*means), "|", color=colour, markersize=7, markeredgewidth=2, label=f"{name}'s mean")
    ratios = [x for row in rows.values() for package in PACKAGES for x in row.get(package, NOTHING)["ratios"]]
    _speed_axis(axes, label, ratios)
    axes.set_xlim(min(*ratios, *least) / 1.1, max(*ratios, *mean) * 1.1)
    for i, row in enumerate(rows.values()):
        _name_the_worst(axes, i, {package: row[package] for package in PACKAGES if package in row})


def _name_the_worst(axes, i, packages):
    """The name of a row's worst case, left of its dot, or right of all dots where there is more room; cut to what there is."""
    untimed = sum(found["untimed"] for found in packages.values())
    timed = {package: found for package, found in packages.items() if found["ratios"]}
    text = f"{untimed} without a time" if untimed else ""
    package = min(timed, key=lambda package: min(timed[package]["ratios"]), default=None)
    if package is None:
        axes.annotate(text, (1, i), ha="left", va="center", fontsize=6.5)
        return
    worst, most = min(timed[package]["ratios"]), max(x for found in timed.values() for x in found["ratios"])
    name, text = timed[package]["worst"], f": {worst:.2f}{f'; {text}' if text else ''}"
    first, last = map(math.log, axes.get_xlim())
    left, right = ((part / (last - first) * STRIP) / LETTER for part in (math.log(worst) - first, last - math.log(most)))
    is_left = left > min(len(name + text), right)
    most_letters = max(FEWEST, int(max(left, right)) - len(text))
    name = name if len(name) <= most_letters else f"{name[: most_letters - 1].rstrip()}…"
    x, offset, side = (worst, -4, "right") if is_left else (most, 5, "left")
    place = {"xytext": (offset, 0), "textcoords": "offset points", "ha": side, "va": "center", "fontsize": 6.5}
    axes.annotate(name + text, (x, i + PACKAGES[package][3] * is_left), **place)


def bars(figure, title, origin, rows, vendor, line, label):
    """A bar per design and package, and a line at the vendor's. rows: {design: {package: speed}}"""
    axes = _rows_of(figure, title, origin, rows, 0.34)
    axes.axvline(line, color=VENDOR, linestyle="--", linewidth=1, label=vendor)
    for package, (name, _, colour, shift) in PACKAGES.items():
        own = [(i + shift, row[package]) for i, row in enumerate(rows.values()) if package in row]
        axes.barh([y for y, _ in own], [x for _, x in own], height=0.34, color=colour, label=name)
        for y, x in own:  # in a column, where no line crosses them
            axes.annotate(f" {three_digits(x)}", (1, y), xycoords=AT_ROW, va="center", fontsize=7, color=colour)
    axes.set_xlabel(label)
    axes.grid(axis="y", visible=False)
    _legend(axes)


def errors(figure, title, origin, rows, label):
    """A row per precision: a dot per package and kind of operands, and ticks at their bounds.

    rows: {precision: {package or "torch": [(error, bound)]}}
    """
    axes = _rows_of(figure, title, origin, rows, 0.45)
    bounds = [(bound, i) for i, row in enumerate(rows.values()) for own in row.values() for _, bound in own]
    axes.plot(*zip(*dict.fromkeys(bounds)), "|", color=TONE, markersize=14, markeredgewidth=1.2, label="bounds")
    for package, (name, marker, colour, shift) in (PACKAGES | {"torch": ("torch", "^", VENDOR, 0)}).items():
        dots = [(x, i + shift) for i, row in enumerate(rows.values()) for x, _ in row.get(package, ())]
        if dots:
            axes.plot(*zip(*dots), marker, color=colour, markersize=3.5, alpha=0.7, markeredgewidth=0, label=name)
    axes.set(xscale="log", xlabel=label)
    _legend(axes)


def curves(figure, title, origin, panels, x_label, y_label, line=None):
    """Lines over a logarithmic x, a panel per package. panels: {title: {name: [(x, y)]}}; a name in brackets is not ours."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    others = dict(zip((name for name in names if name.startswith("(")), ("--", ":")))
    handles, first = {}, None
    for i, (heading, panel) in enumerate(panels.items()):
        axes = first = _axes(figure, title, origin, 3.6, (1, len(panels), i + 1), first)
        for name, points in panel.items():
            colour = TONE if name in others else SERIES[names.index(name) % len(SERIES)]
            style = others.get(name) or f"{MARKERS[names.index(name) % len(MARKERS)]}-"
            (handle,) = axes.plot(*zip(*points), style, color=colour, markersize=3.5, linewidth=1.3)
            handles[name.strip("()")] = handle
        if line:
            axes.axhline(line, color=TONE, linewidth=1.2)
        ticks = sorted({x for points in panel.values() for x, _ in points})
        axes.set_xscale("log")
        axes.set_xticks(ticks, [str(x) for x in ticks], rotation=45, fontsize=7)
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_title(heading, color=TONE)
        axes.set_xlabel(x_label)
    figure.axes[0].set_ylabel(y_label)
    figure.legend(handles.values(), handles, loc="outside right center", frameon=False, fontsize=8)


def scatter(figure, title, origin, points, x_label, y_label, line=None, bounds=()):
    """Dots on logarithmic axes, a marker per package and a colour per kind, and ticks at the bounds of y.

    points: [(package's name, kind, x, y)]; bounds: [(kind, x, bound)]
    """
    axes = _axes(figure, title, origin, 4.2)
    kinds = list(dict.fromkeys(kind for _, kind, _, _ in points))
    colours = {kind: SERIES[i % len(SERIES)] for i, kind in enumerate(kinds)}
    packages = list(dict.fromkeys(package for package, *_ in points))
    styles = {
        package: {"marker": marker, "markersize": 5, "linestyle": ""}
        for package, marker in zip(packages, itertools.cycle(MARKERS))
    }
    for package, kind, x, y in points:
        axes.plot(x, y, color=colours[kind], alpha=0.85, markeredgewidth=0, **styles[package])
    for kind, x, bound in bounds:
        axes.plot(x, bound, "_", color=colours[kind], markersize=11, markeredgewidth=2)
    axes.set(xscale="log", yscale="log", xlabel=x_label, ylabel=y_label)
    _plain_ticks(axes.xaxis, [x for *_, x, _ in points])
    if line:
        _plain_ticks(axes.yaxis, [y for *_, y in points])
        axes.axhline(line, color=TONE, linewidth=1.2)
    keys = {kind: {"marker": "s", "markersize": 6, "linestyle": "", "color": colour} for kind, colour in colours.items()}
    keys |= {package: style | {"color": TONE} for package, style in styles.items()}
    keys |= {"bound": {"marker": "_", "markersize": 9, "linestyle": "", "color": TONE}} if bounds else {}
    handles = [axes.plot([], [], markeredgewidth=2 if name == "bound" else 0, **key)[0] for name, key in keys.items()]
    axes.legend(handles, keys, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)


def _axes(figure, title, origin, height, place=(1, 1, 1), share_y=None, width=8):
    figure.set_layout_engine("constrained")
    figure.set_size_inches(width, height)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel(textwrap.fill(origin, 130), fontsize=7, x=0.01, ha="left")
    axes = figure.add_subplot(*place, sharey=share_y, facecolor="none", axisbelow=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=TONE, alpha=0.25)
    return axes


def _rows_of(figure, title, origin, rows, height, width=8):
    """Axes with a named row per entry, the first on top."""
    axes = _axes(figure, title, origin, min(1.4 + height * len(rows), TALLEST * width), width=width)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    return axes


def _speed_axis(axes, label, values):
    axes.set_xscale("log")
    _plain_ticks(axes.xaxis, values)
    axes.axvline(1, color=TONE, linewidth=1.2)
    axes.set_xlabel(label)
    _legend(axes)


def _plain_ticks(axis, values):
    """1, 2 and 5 of each decade that is shown, or some more where it is less than one, as plain numbers."""
    digits = (1, 2, 5) if max(values) > 8 * min(values) else (1, 1.2, 1.5, 2, 3, 5, 7)
    ticks = [digit * 10.0**power for power in range(-3, 5) for digit in digits]
    ticks = [x for x in ticks if 0.8 * min(values) <= x <= 1.25 * max(values)]
    axis.set_ticks(ticks, [f"{x:g}" for x in ticks])
    axis.set_ticks([], minor=True)


def _legend(axes):
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=5, borderaxespad=0.2, frameon=False, fontsize=8)
