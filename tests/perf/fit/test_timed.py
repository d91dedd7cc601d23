"""Timed shapes are read from the records of `perf compare` and `perf sweep`, in an order that is not the files'."""

import json

from perf.fit import timed
from perf.fit.timed import Run
from perf.measure.records import read_rows, write_rows

SUITES = [timed.RESULTS / "h200" / f"{name}.json" for name in ("ladder", "square", "gemv")]
CONFIG = {"BLOCK_M": 16}


def test_the_order_of_the_files_does_not_matter():
    shapes, commit, _ = timed.of_gpu("h200", SUITES)
    again, same, _ = timed.of_gpu("h200", SUITES[::-1])
    assert [(s.key, s.runs) for s in shapes] == [(s.key, s.runs) for s in again]
    assert commit == same and commit.isalnum()
    assert {s.half for s in shapes} == {"fit", "judge"} and not any(s.judges for s in shapes)


def test_a_suite_has_each_call_once():
    """Calls in a row are known as such."""
    rows = read_rows(SUITES[0])
    shapes = list(timed.of_suite(rows))
    assert len(shapes) == len({row["case"] for row in rows}) == len({s.key for s in shapes})
    for in_a_row in (False, True):
        row = next(row for row in rows if row["implementation"] == "cuda" and (row["calls"] > 1) == in_a_row)
        own = next(s for s in shapes if s.problem.describe() == row["problem"])
        assert Run(row["design"], row["config"], row["median_ms"] / 1e3, in_a_row) in own.runs["cuda_reference"]
        assert 0.5 < own.torch / min(run.seconds for run in own.runs["tritonkernels"]) < 3


def test_operands_that_stay_in_l2_teach_nothing():
    rows = read_rows(SUITES[2])
    rotating = {row["case"] for row in rows if row["case"].endswith("rotating")}
    assert len(list(timed.of_suite(rows))) == len(rotating) < len({row["case"] for row in rows})
    assert all(run.in_a_row for s in timed.of_suite(rows) for runs in s.runs.values() for run in runs)


def test_a_sweep_judges(tmp_path):
    row = next(row for row in read_rows(SUITES[0]) if row["implementation"] == "triton")
    header = {"environment": {"device": "NVIDIA H200", "date": "2026", "commit": "abc+def"}, "settings": {}}
    swept = {
        "op": row["op"],
        "family": "llm",
        "package": "tritonkernels",
        "problem": row["problem"],
        "torch": ["addmm", 12.5],
        "times": [["tiled", CONFIG, 10.0, 0.01], ["naive", CONFIG, 40.0, None]],
        "wrong": [],
        "failed": [],
        "left_out": 0,
    }
    path = tmp_path / "gemm.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, swept)))
    (shape,), commit, _ = timed.of_gpu("h200", [path])
    assert (shape.family, shape.judges, shape.torch, commit) == ("llm", True, 12.5e-6, "abc")
    assert shape.runs == {"tritonkernels": [Run("tiled", CONFIG, 1e-5), Run("naive", CONFIG, 4e-5)]}


def test_nothing_is_fitted_to_classes(tmp_path, monkeypatch):
    """Nor to a file of them that someone names."""
    path, rows = tmp_path / "h200" / "classes.json", read_rows(SUITES[0])
    path.parent.mkdir()
    write_rows(path, [*rows, *(row | {"suite": "classes", "problem": row["problem"] | {"n": 77}} for row in rows)])
    monkeypatch.setattr(timed, "RESULTS", tmp_path)
    for paths in (None, [path]):
        fitted = timed.of_gpu("h200", paths).shapes
        assert len(fitted) == len({row["case"] for row in rows}) and all(shape.problem.n != 77 for shape in fitted)
