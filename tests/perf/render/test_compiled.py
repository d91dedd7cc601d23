"""Tables of machine code are out of date when the kernels, their default configs or predicted times are others."""

import re
from types import SimpleNamespace

import pytest

from perf.render import chapter, compiled


def is_current():
    return not chapter.has_other_code((chapter.DOCS / "gemm.md").read_text())


def test_the_chapter_has_both_tables():
    kinds = re.findall(r"<!-- (\w+): ", (chapter.DOCS / "gemm.md").read_text())
    assert {"inspect", "trace"} <= set(kinds)


def test_other_kernels_are_noticed(monkeypatch):
    monkeypatch.setattr(compiled.kernels, "digests", lambda: {"gemm": "of another source"})
    assert not is_current()


@pytest.mark.parametrize("other", ({"config": {"BM": 1}}, {"predicted_s": 1.0}, {"bound_by": "nothing"}))
def test_another_config_or_prediction_is_noticed(monkeypatch, other):
    inspect = compiled.inspection.inspect

    def changed(*arguments, **options):
        yield from (row | other if row["design"] == "stream_k" else row for row in inspect(*arguments, **options))

    before = compiled.digest("gemm", "sm_90")
    monkeypatch.setattr(compiled.inspection, "inspect", changed)
    assert compiled.digest("gemm", "sm_90") != before


def test_accesses_are_summed_by_array():
    a, b = (SimpleNamespace(space="shared", kind="read", array=name, units=3, ideal_units=2) for name in ("a_tile", "b_tile"))
    assert compiled._cost([a, a, b], "shared", "read", ("a_tile",)) == "6 for 4"
    assert compiled._cost([a], "global", "read", ("argument 0",)) == "-"
