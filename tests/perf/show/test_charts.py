"""Charts and their colours: each has one meaning, the colour-blind tell them apart, and no chart is higher than a screen."""

import itertools
import re

import numpy as np
import pytest

from perf.render import docs
from perf.render.report import pages
from perf.show import charts, palette
from perf.show.picture import Picture

Figure = pytest.importorskip("matplotlib.figure").Figure
DRAWN = (palette.TRITON, palette.CUDA, palette.VENDOR, *palette.SERIES)

# linear RGB as seen without one kind of cones: Machado, Oliveira and Fernandes, 2009, severity 1
SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    channels = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    ratios = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(1)
    x, y, z = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(*colours):
    dark, light = sorted(float(XYZ[1] @ linear(colour)) for colour in colours)
    return (light + 0.05) / (dark + 0.05)


def seen(sight, colour):
    return lab(np.array(SIGHT[sight]) @ linear(colour))


def least_distance(sight, pairs):
    return min(np.linalg.norm(seen(sight, a) - seen(sight, b)) for a, b in pairs)


def themes(css):
    """{variable: colour} of the light and of the dark page."""
    return [dict(re.findall(r"--(\w+): (#\w+)", theme)) for theme in re.findall(r":root {(.*?)}", css, re.DOTALL)]


def size(picture):
    figure = Figure()
    picture.draw(figure, **picture.data)
    return figure.get_size_inches()


@pytest.mark.parametrize("sight", SIGHT)
def test_each_two_colours_of_a_chart_differ(sight):
    assert least_distance(sight, itertools.combinations(DRAWN, 2)) > 15


@pytest.mark.parametrize("page", ["#fff", "#0f1317"])
def test_lines_show_on_white_and_on_black(page):
    assert min(contrast(colour, page) for colour in DRAWN) > 2.5


@pytest.mark.parametrize("theme", palette.BEHIND_TO_AHEAD)
def test_the_text_on_each_colour_from_behind_to_ahead_is_legible(theme):
    colours = palette.BEHIND_TO_AHEAD[theme]
    assert len(colours) == 9 and min(itertools.starmap(contrast, colours)) > 4.5


def test_the_text_of_the_page_and_of_its_code_is_legible():
    own, shared = (themes(css) for css in ((pages.FOLDER / "page.css").read_text(), palette.css()))
    assert len(own) == len(shared) == 2, "a light and a dark one"
    for colours in (of_page | of_all for of_page, of_all in zip(own, shared, strict=True)):
        texts = [colours[name] for name in ("text", "faint", "link", "math", "shared")]
        assert min(contrast(text, colours[under]) for text in texts for under in ("page", "panel")) > 4.5


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", palette.BEHIND_TO_AHEAD)
def test_behind_and_ahead_differ_and_are_not_the_packages(sight, theme):
    fills = [fill for fill, _ in palette.BEHIND_TO_AHEAD[theme]]
    assert least_distance(sight, itertools.product(fills[:3], fills[6:])) > 15
    assert least_distance("normal", itertools.product((palette.TRITON, palette.CUDA), fills[:3] + fills[6:])) > 25


def test_no_picture_of_the_docs_is_higher_than_a_screen():
    """Which is 900 pixels high where a picture is 1100 wide."""
    for path, picture in docs._pictures().items():
        width, height = size(picture)
        assert height / width <= 900 / 1100, path


def test_no_caption_of_the_docs_has_a_commit():
    origins = [picture.data["origin"] for picture in docs._pictures().values() if "origin" in picture.data]
    assert origins and not re.search(r"\b[0-9a-f]{7,}\b", " ".join(origins))


ROWS = {f"row {i}": {"triton": [0.5, 2.0], "cuda": [1.5]} for i in range(60)}
STRIPS = {
    name: {"goal": [1.0, 0.9]} | {p: {"ratios": xs, "mean": 1.0, "worst": "a case", "untimed": 0} for p, xs in row.items()}
    for name, row in ROWS.items()
}
BARS = {name: {package: xs[0] for package, xs in row.items()} for name, row in ROWS.items()}
ERRORS = {name: {package: [(x, 3.0) for x in xs] for package, xs in row.items()} for name, row in ROWS.items()}


@pytest.mark.parametrize(
    "draw, data",
    [
        (charts.strips, {"rows": STRIPS, "label": "x"}),
        (charts.bars, {"rows": BARS, "vendor": "cuBLAS", "line": 1.0, "label": "x"}),
        (charts.errors, {"rows": ERRORS, "label": "x"}),
    ],
)
def test_many_rows_fit_on_a_screen(draw, data):
    width, height = size(Picture(draw, {"title": "t", "origin": "o", **data}))
    assert height / width <= 900 / 1100


def texts(rows):
    """The texts of a chart of strips that are not of its axes, and where they are placed."""
    figure = Figure()
    charts.strips(figure, "t", "o", rows, "x")
    return {text.get_text(): text for text in figure.axes[0].texts}


def test_a_strip_has_the_mean_and_the_worst_case_of_its_class():
    """A mean is bold where it reaches the goal; the worst name is left of its dot, or right of all and cut."""

    def row(*ratios, worst, untimed=0):
        return {"ratios": ratios, "mean": sum(ratios) / len(ratios) if ratios else None, "worst": worst, "untimed": untimed}

    found = texts(
        {
            "a": {"goal": [1.0, 0.9], "triton": row(0.5, 0.7, worst="slow"), "cuda": row(0.9, 1.5, worst="fast", untimed=2)},
            "b": {"goal": [1.0, 0.9], "triton": row(0.1, 8.0, worst="a name that has no room at all"), "cuda": row(worst=None)},
        }
    )
    assert found["0.60"].get_weight() == "normal" and found["1.20"].get_weight() == "bold" and found["-"]
    assert found["slow: 0.50; 2 without a time"].xy == (0.5, charts.PACKAGES["triton"][3])
    assert found["slow: 0.50; 2 without a time"].get_ha() == "right"
    name = found["a name that…: 0.10"]
    assert name.xy == (8.0, 1) and name.get_ha() == "left"


def test_a_class_without_any_time_says_so():
    untimed = {"goal": [1.0, 0.9], "triton": {"ratios": [], "mean": None, "worst": None, "untimed": 3}}
    timed = {"goal": [1.0, 0.9], "triton": {"ratios": [1.0], "mean": 1.0, "worst": "one", "untimed": 0}}
    assert "3 without a time" in texts({"a": untimed, "b": timed})
