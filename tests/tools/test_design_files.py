"""A design's file in Triton holds its kernel, and the chapters of the Hopper ladder and of convolutions are short."""

import re
from pathlib import Path

import pytest

from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

ROOT = Path(__file__).parents[2]
KERNEL = re.compile(r"^@(?:triton|gluon)\.jit\ndef \w*kernel\(", re.MULTILINE)
SHARED = {  # one kernel of parts/ with other tiles, layouts or types, as the docstrings say; no lessons
    "parts/row_tile.py": {("gemv", "vectorized"), ("gemv", "rows_per_warp"), ("gemv", "block_per_row")},
    "parts/gluon_product.py": {("matmul", "cuda_cores"), ("matmul", "dmma")},
}
MOST_LINES = 250


def test_a_design_holds_its_kernel():
    rungs = [(op, rung) for op in OPS for rung in LIBRARY.operation(op).own if rung.is_in("tritonkernels")]
    texts = {(op, rung.name): (ROOT / f"tritonkernels/{op}/{rung.name}.py").read_text() for op, rung in rungs}
    without = {design for design, text in texts.items() if not KERNEL.search(text)}
    assert without == set().union(*SHARED.values())
    assert not without & {(op, rung.name) for op, rung in rungs if rung.kind == "lesson"}
    assert all(part in texts[design] for part, designs in SHARED.items() for design in designs)


@pytest.mark.parametrize("chapter", ("matmul", "conv2d"))
def test_a_chapter_is_short(chapter):
    assert len((ROOT / f"docs/{chapter}.md").read_text().splitlines()) <= MOST_LINES
