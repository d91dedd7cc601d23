"""Tables and the chart of whole models: what was measured is there, and what was not is named."""

import dataclasses

import pytest

from perf.measure import records
from perf.measure.models import table as models
from perf.measure.models.one import Row
from perf.show import model_chart, plot

ENVIRONMENT = {"device": "X1", "date": "2026-01-01", "torch": "2", "triton": "3", "cuda": "13", "commit": "abc"}


def way(us):
    return {"median_us": us, "p20_us": us, "p80_us": us}


def row(what, ours, **changes):
    """Ours takes `ours` us in a graph, torch 100."""
    kernels = {
        "torch": {"operations": {"matmul": 80.0, "bias": 4.0}, "layers": {}, "extra": []},
        "triton": {
            "operations": {"matmul": 60.0},
            "layers": {},
            "extra": [[f"_copy_{i}", "matmul", 2.0, 9.0 - i] for i in range(6)],
        },
    }
    measured = {
        "layers": 3,
        "replaced": {"triton": 2},
        "times": {"torch": {"graph": way(100), "eager": way(110)}, "triton": {"graph": way(ours), "eager": way(220)}},
        "error": {"torch": 1e-3, "triton": 2e-3},
        "gradient_error": {} if what == "forward" else {"torch": 3e-3, "triton": 4e-3},
        "first_s": {"torch": 0.5, "triton": 20.0},
        "peak_bytes": {"torch": 1 << 20, "triton": 2 << 20},
        "kernels": kernels,
        "ok": True,
    }
    return Row("net", "Net", "bf16", "64 images", what, **(measured | {"environment": ENVIRONMENT} | changes))


@pytest.fixture
def folder(tmp_path):
    absent = Row("other", "Other", "bf16", "1 token", ok=None, message="not installed", environment=ENVIRONMENT)
    records.write_json(tmp_path / "models.json", [row("forward", 80), row("training step", 125), absent])
    return tmp_path


def test_the_page_has_speed_costs_kernels_and_what_is_missing(folder):
    page = models.markdown(folder)
    for line in (
        "| Net | bf16 | 64 images | triton | 2 of 3 | 1.25 | 0.50 | 0.80 | 0.50 |",
        "| geometric mean, goal 1.05 |  |  | triton |  | 1.25 | 0.50 | 0.80 | 0.50 |",
        "| below 1.00 |  |  | triton |  | 0 of 1 | 1 of 1 | 1 of 1 | 1 of 1 |",
        "| Net | bf16 | 64 images | triton | 2.0e-03 / 1.0e-03 | 4.0e-03 / 3.0e-03 | 2 / 1 | 2 / 1 | 40.0 / 1.0 |",
        "| 60 / 84 | 60 / 80 | 0 / 4 | matmul: _copy_0 2 x, 9 us;",
        "2 more, 9 us",
        "- Not run: Other, bf16, 1 token: not installed",
        "X1, 2026-01-01",
    ):
        assert line in page, line


def test_without_records_there_is_nothing(tmp_path):
    assert models.markdown(tmp_path) == "" and models.picture(tmp_path) is None


def test_what_was_not_run_makes_no_empty_table():
    absent = Row("other", "Other", "bf16", "1 token", ok=None, message="not installed", environment=ENVIRONMENT)
    assert list(models.tables([dataclasses.asdict(absent)])) == []


def test_a_forward_alone_has_its_row(tmp_path):
    """For decoding no training step is measured; where no graph could be captured, the cell is empty."""
    eager = {name: {"eager": way(100)} for name in ("torch", "triton")}
    headings, body = next(models.tables([dataclasses.asdict(row("forward", 80, times=eager))]))[1:]
    assert body[0][headings.index("forward, graph") :] == ["-", "1.00", "-", "-"]


def test_failures_are_said():
    assert list(models.unsound([dataclasses.asdict(row("forward", 80, ok=False, message="wrong"))])) == [
        "Failed: Net, bf16, 64 images, forward: wrong"
    ]


def test_the_picture_has_each_ratio(folder):
    picture = models.picture(folder)
    ratios = {"forward, graph": 1.25, "forward, eager": 0.5, "training step, graph": 0.8, "training step, eager": 0.5}
    assert picture.data["rows"] == {"Net, 64 images, bf16": {"triton": ratios}}
    if plot.available():
        svg = picture.svg()
        assert all(text in svg for text in ("Net, 64 images, bf16", "goal of the mean, 1.05", "Triton, training step"))
    assert picture.draw is model_chart.bars


def test_the_page_says_of_which_commit_each_model_is(tmp_path):
    older = row("forward", 90, environment=ENVIRONMENT | {"commit": "older"})
    older.model, older.title = "other", "Other"
    records.write_json(tmp_path / "models.json", [row("forward", 80), row("training step", 80), older])
    assert "at `abc`: Net; `older`: Other." in models.markdown(tmp_path)
