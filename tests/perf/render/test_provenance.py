"""The tables of perf/results/README.md, of files made up here."""

import json

import pytest

from perf.measure import measured
from perf.render import provenance

WHERE = "a GPU | torch 2.11, Triton 3.6, driver 580"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    (tmp_path / "gpu").mkdir()
    return tmp_path / "gpu"


def environment(commit, date):
    versions = {"torch": "2.11", "triton": "3.6", "cuda": None, "driver": "580"}
    return {"commit": commit, "date": f"{date}T12:00:00+00:00", "device": "a GPU", **versions}


def test_rows_are_counted_by_commit(folder):
    environments = [environment("0123456789abcdef", "2026-01-02"), environment("fedcba9876543210", "2026-01-03")]
    rows = [{"environment": 1, "ok": True}, {"environment": 0, "ok": False}, {"environment": 1, "ok": True}]
    (folder / "llm.json").write_text(json.dumps({"environments": environments, "records": rows}))
    (folder / "counters.json").write_text(json.dumps({"environment": environments[0], "records": [{}, {}]}))
    (folder / "gate.json").write_text("{}")
    assert provenance.files("gpu").splitlines() == [
        "| file | measured | GPU | versions | commit | rows | not right |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        f"| counters | 2026-01-02 | {WHERE} | 0123456789ab | 2 | - |",
        f"| llm | 2026-01-03 | {WHERE} | fedcba987654 | 2 | 0 |",
        f"| llm | 2026-01-02 | {WHERE} | 0123456789ab | 1 | 1 |",
    ]


def test_sweeps_are_in_the_order_of_their_days(folder):
    def row(package, times, wrong):
        return {
            "op": "gemv",
            "package": package,
            "times": [["tiled", {}, 1.0, None]] * times,
            "wrong": [["tiled", {}, "why"]] * wrong,
        }

    lines = [
        {"environment": environment("late", "2026-01-03"), "settings": {}},
        row("tritonkernels", 3, 0),
        {"environment": environment("early", "2026-01-02"), "settings": {}},
        row("cuda_reference", 2, 1),
        row("cuda_reference", 1, 0),
        {"environment": environment("late", "2026-01-03"), "settings": {}},  # another run of the same
        row("cuda_reference", 5, 0),
    ]
    (folder / "sweep.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert provenance.sweeps("gpu").splitlines()[2:] == [
        f"| gemv | 2026-01-02 | {WHERE} | early | 0 | 2 | 3 | 1 |",
        f"| gemv | 2026-01-03 | {WHERE} | late | 1 | 1 | 8 | 0 |",
    ]
