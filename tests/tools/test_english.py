"""Pages, lessons and all Python are in plain English: without stilted words, and with docstrings that name their subject."""

import re
from pathlib import Path

import pytest

from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")] + sorted(ROOT.glob("docs/*.md"))
SOURCES = [
    path
    for folder in ("tritonkernels", "cuda_reference", "perf", "tests", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.parent.name != "catalogue" and path != Path(__file__)  # mutants quote code, and keep the names of their outcomes
]
LESSONS = [
    path
    for op in OPS
    for rung in LIBRARY.operation(op).own
    if rung.kind == "lesson"
    for package in ("tritonkernels", "cuda_reference")
    for path in (ROOT / package / op).glob(f"{rung.name}.*")
]
# A stress of recorded operands is called "1e30 beside 1e-30".
WORDS = re.compile(r'\b(?:told|beside(?! 1e-30)|anew)\b|"""(?:Of|Those|So many)\b', re.IGNORECASE)
CLAUSES = re.compile(r"(?:[.,;:]\s+|^)(?:of which|those of)\b", re.IGNORECASE | re.MULTILINE)


@pytest.mark.parametrize("path", [*PAGES, *LESSONS], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_stilted_words(path):
    """Nor in pages clauses that begin so; a lesson's comment is left as it was when it was timed."""
    text = path.read_text()
    assert WORDS.findall(text) + (CLAUSES.findall(text) if path in PAGES else []) == []


def test_no_stilted_words_in_python():
    lines = ((path, line) for path in SOURCES for line in path.read_text().splitlines())
    assert [f"{path.relative_to(ROOT)}: {line.strip()}" for path, line in lines if WORDS.search(line)] == []


def test_they_are_found():
    assert all(map(WORDS.search, ("as we are told", '"""Of a thread."""'))) and not WORDS.search('"""What is besides"""')
    assert all(map(CLAUSES.search, ("Two accesses, of which one waits.", "It ends.\nThose of the last slice wait.")))
    assert len(LESSONS) > 20 and len(SOURCES) > 600 and len(PAGES) > 15
