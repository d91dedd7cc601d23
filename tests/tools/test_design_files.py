"""A design's file in Triton holds its kernel, and the chapters of the Hopper ladder and of convolutions are short."""

import re
from pathlib import Path

import pytest

from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

ROOT = Path(__file__).parents[2]
KERNEL = re.compile(r"^@(?:(?:triton|gluon)\.)?jit\ndef \w*kernel\(", re.MULTILINE)
MOST_LINES = 250  # of docs/matmul.md


def test_a_design_holds_its_kernel():
    rungs = [(op, rung) for op in OPS for rung in LIBRARY.operation(op).own if rung.is_in("tritonkernels")]
    files = [ROOT / f"tritonkernels/{op}/{rung.name}.py" for op, rung in rungs]
    assert files and not [file for file in files if not KERNEL.search(file.read_text())]


@pytest.mark.parametrize("chapter", ("matmul", "conv2d"))
def test_a_chapter_is_short(chapter):
    assert len((ROOT / f"docs/{chapter}.md").read_text().splitlines()) <= MOST_LINES
