"""The pages that a newcomer reads first, and the lessons, are in plain English: without the words that STYLE.md leaves out."""

import re
from pathlib import Path

import pytest

from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / f"docs/{name}.md" for name in ("gemm", "gemv", "conv2d", "designs"))]
LESSONS = [
    path
    for op in OPS
    for rung in LIBRARY.operation(op).own
    if rung.kind == "lesson"
    for package in ("tritonkernels", "cuda_reference")
    for path in (ROOT / package / op).glob(f"{rung.name}.*")
]
WORDS = re.compile(r'\b(?:told|beside|anew)\b|"""Of\b', re.IGNORECASE)
CLAUSES = re.compile(r"(?:[.,;:]\s+|^)(?:of which|those of)\b", re.IGNORECASE | re.MULTILINE)


@pytest.mark.parametrize("path", [*PAGES, *LESSONS], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_stilted_words(path):
    """Nor in pages clauses that begin so; a lesson's comment is left as it was when it was timed."""
    text = path.read_text()
    assert WORDS.findall(text) + (CLAUSES.findall(text) if path in PAGES else []) == []


def test_they_are_found():
    assert all(map(WORDS.search, ("as we are told", '"""Of a thread."""'))) and not WORDS.search('"""What is besides"""')
    assert all(map(CLAUSES.search, ("Two accesses, of which one waits.", "It ends.\nThose of the last slice wait.")))
    assert len(LESSONS) > 20
