"""The chart of speed against error: drawn from records with and without times, refused before any work where it cannot be."""

import pytest

from perf.__main__ import main
from perf.measure import compare
from perf.measure.records import Record, write_json
from perf.show import plot


def record(precision, error, tflops=None, implementation="triton", ok=True):
    return Record(
        suite="precision",
        case="64x64x64 float32",
        seed=0,
        op="matmul",
        problem={"n": 64},
        implementation=implementation,
        design="planes",
        backend="gpu",
        precision=precision,
        target="h200",
        environment={},
        error=error,
        bound=1e-6,
        ok=ok,
        tflops=tflops,
    )


@pytest.mark.parametrize("tflops, label", [(200.0, "TFLOP/s on h200"), (None, "no times without a GPU")])
def test_the_axis_says_what_was_measured(tmp_path, tflops, label):
    file = tmp_path / "chart.svg"
    records = [record("fp16x3", 1e-7, tflops), record("ieee", 0.0, tflops, "torch"), record("tf32", 1.0, tflops, ok=False)]
    plot.speed_against_error(records, file)
    text = file.read_text()
    assert label in text
    assert ">fp16x3</text>" in text and ">ieee</text>" in text and "tf32" not in text
    assert (">triton planes</text>" if tflops else ">Triton</text>") in text


def test_a_chart_of_record_files(tmp_path):
    for name in ("ieee", "tf32"):
        write_json(tmp_path / f"{name}.json", [record(name, 1e-7)])
    files = [str(tmp_path / "ieee.json"), str(tmp_path / "tf32.json")]
    assert main(["compare", "--records", *files, "--plot", str(tmp_path / "chart.svg")]) == 0
    text = (tmp_path / "chart.svg").read_text()
    assert "ieee" in text and "tf32" in text


@pytest.mark.parametrize("name, reason", [("chart.gif", ".png, .svg"), ("missing/chart.png", "folder")])
def test_a_chart_that_cannot_be_drawn_is_refused_at_once(name, reason, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(plot, "available", lambda: True)
    with pytest.raises(SystemExit):
        main(["compare", "--suite", "precision", "--plot", str(tmp_path / name)])
    assert reason in capsys.readouterr().err


def test_without_matplotlib_it_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compare.plot, "available", lambda: False)
    with pytest.raises(SystemExit):
        main(["compare", "--suite", "precision", "--plot", str(tmp_path / "chart.png")])
    assert "matplotlib" in capsys.readouterr().err
