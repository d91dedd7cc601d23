"""A design's file in Triton holds its kernel, and the chapter of the Hopper ladder is short."""

import re
from pathlib import Path

from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

ROOT = Path(__file__).parents[2]
KERNEL = re.compile(r"^@(?:triton|gluon)\.jit\ndef \w*kernel\(", re.MULTILINE)
MOST_LINES = 250  # of docs/matmul.md


def test_a_design_holds_its_kernel():
    rungs = [(op, rung) for op in OPS for rung in LIBRARY.operation(op).own if rung.is_in("tritonkernels")]
    files = [ROOT / f"tritonkernels/{op}/{rung.name}.py" for op, rung in rungs]
    assert files and not [file for file in files if not KERNEL.search(file.read_text())]


def test_the_chapter_of_the_hopper_ladder_is_short():
    assert len((ROOT / "docs/matmul.md").read_text().splitlines()) <= MOST_LINES
