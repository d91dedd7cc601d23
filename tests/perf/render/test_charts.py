"""Colours of the charts and of the report: told apart by the colour-blind, legible on white and on black."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from perf.render import charts
from perf.render.report import command

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


@pytest.mark.parametrize("sight", SIGHT)
def test_each_two_colours_of_a_chart_differ(sight):
    seen = [lab(np.array(SIGHT[sight]) @ linear(colour)) for colour in charts.COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 15


@pytest.mark.parametrize("page", ["#fff", "#0f1317"])
def test_lines_show_on_white_and_on_black(page):
    assert min(contrast(colour, page) for colour in charts.COLOURS) > 2.5


def test_the_text_on_each_colour_of_the_heat_map_is_legible():
    css = (Path(command.FOLDER) / "page.css").read_text()
    pairs = re.findall(r"\.x\d { background: (#\w+); color: (#\w+); }", css)
    assert len(pairs) == 18 and min(itertools.starmap(contrast, pairs)) > 4.5


def test_the_text_of_the_page_and_of_its_code_is_legible():
    css = (Path(command.FOLDER) / "page.css").read_text()
    for theme in re.findall(r":root {(.*?)}", css, re.DOTALL):
        colours = dict(re.findall(r"--(\w+): (#\w+)", theme))
        texts = [colours[name] for name in ("text", "faint", "link", "math", "shared", "keyword", "string", "name")]
        assert min(contrast(text, colours[under]) for text in texts for under in ("page", "panel")) > 4.5


@pytest.mark.parametrize("sight", SIGHT)
def test_behind_and_ahead_differ_in_the_heat_map(sight):
    css = (Path(command.FOLDER) / "page.css").read_text()
    colours = re.findall(r"\.x\d { background: (#\w+)", css)
    for theme in (colours[:9], colours[9:]):
        seen = [lab(np.array(SIGHT[sight]) @ linear(colour)) for colour in theme]
        assert min(np.linalg.norm(a - b) for a, b in itertools.product(seen[:3], seen[6:])) > 15
