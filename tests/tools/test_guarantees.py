"""docs/guarantees.md names a test for each promise: they must exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/guarantees.md").read_text())


def test_every_promise_names_a_test():
    rows = [
        line
        for line in (ROOT / "docs/guarantees.md").read_text().splitlines()
        if line.startswith("| ") and "checked by" not in line
    ]
    assert len(rows) > 20 and all("::test_" in row for row in rows)


@pytest.mark.parametrize("path, name", NAMED, ids=[name for _, name in NAMED])
def test_the_named_test_exists(path, name):
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
