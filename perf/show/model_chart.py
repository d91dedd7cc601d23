"""The chart of whole models: what a `Picture` draws."""

from . import charts

FORWARD, STEP = "forward", "training step"
HATCHES = {FORWARD: None, STEP: "////"}


def bars(figure, title, origin, rows, goal):
    """Bars from 1.00, a row per model: forward, and a training step, hatched; in a CUDA graph, and a circle for eager.

    rows: {model: {package: {"forward, graph": ratio or None, ...}}}
    """
    axes = charts._rows_of(figure, title, origin, rows, 0.4)
    packages = [package for package in charts.PACKAGES if any(package in row for row in rows.values())]
    height = 0.76 / (2 * len(packages))
    for p, package in enumerate(packages):
        name, _, colour, _ = charts.PACKAGES[package]
        for s, (step, hatch) in enumerate(HATCHES.items()):
            places = [i - 0.38 + (2 * p + s + 0.5) * height for i in range(len(rows))]
            own = [(y, row.get(package, {})) for y, row in zip(places, rows.values())]
            graphs = [(y, found[f"{step}, graph"]) for y, found in own if found.get(f"{step}, graph")]
            style = {"facecolor": colour if hatch is None else "none", "edgecolor": colour, "hatch": hatch}
            axes.barh(
                [y for y, _ in graphs],
                [x - 1 for _, x in graphs],
                0.85 * height,
                1.0,
                label=f"{name}, {step}",
                linewidth=0.7,
                **style,
            )
            eager = [(found[f"{step}, eager"], y) for y, found in own if found.get(f"{step}, eager")]
            label = f"{name}, eager" if hatch is None else None
            circles = {"markerfacecolor": "none", "markeredgecolor": charts.TONE, "markersize": 4, "label": label}
            axes.plot(*zip(*eager or [(None, None)]), "o", **circles)
    axes.axvline(1, color=charts.TONE, linewidth=1.2)
    axes.axvline(goal, color=charts.TONE, linestyle="--", linewidth=1, label=f"goal of the mean, {goal:.2f}")
    axes.set_xlabel("torch's time over ours; right of 1 ours is faster")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2, frameon=False, fontsize=8)
