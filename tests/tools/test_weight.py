"""A clone is small: records are compressed, and what a command can draw is not checked in."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MB = 10**6


@pytest.fixture(scope="module")
def sizes():
    """{path: bytes} of what git tracks."""
    try:
        run = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if run.returncode:
        pytest.skip(f"not a git checkout: {run.stderr.strip()}")
    return {path: (ROOT / path).stat().st_size for path in run.stdout.split("\0") if (ROOT / path).is_file()}


def test_the_tree_is_small(sizes):
    assert sum(sizes.values()) < 12 * MB


def test_no_file_is_large(sizes):
    assert {path: size for path, size in sizes.items() if size > MB} == {}


def test_charts_that_are_checked_in_are_in_a_page(sizes):
    pages = "".join((ROOT / path).read_text() for path in sizes if path.endswith(".md"))
    assert [path for path in sizes if path.endswith(".svg") and Path(path).name not in pages] == []
