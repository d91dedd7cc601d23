"""perf compare --against: rows are paired, and a change counts if it exceeds the threshold and the noise."""

import contextlib
import dataclasses

import pytest
import torch
from stand_ins import record

from perf.__main__ import main
from perf.measure import against, ahead, compare, contenders, records


def timed(ms, spread=0.01, **changes):
    return record(median_ms=ms, p20_ms=ms * (1 - spread), p80_ms=ms * (1 + spread), **changes)


def status(tmp_path, then, now, *options):
    """The exit status for records of two files."""
    for name, rows in (("then.json", then), ("now.json", now)):
        records.write_json(tmp_path / name, rows)
    return main(["compare", "--records", str(tmp_path / "now.json"), "--against", str(tmp_path / "then.json"), *options])


@pytest.mark.parametrize(
    "then, now, verdict",
    [
        (1.0, 1.05, "slower"),
        (1.0, 0.95, "faster"),
        (1.0, 1.025, "same"),  # the threshold
        (1.0, 0.975, "same"),
    ],
)
def test_a_change_beyond_threshold_and_noise(then, now, verdict):
    assert against.Pair(timed(then), timed(now)).verdict(0.03) == verdict


@pytest.mark.parametrize("factor", [1.1, 1 / 1.1])
def test_where_spreads_overlap_it_is_noise(factor):
    assert against.Pair(timed(1.0, 0.06), timed(factor, 0.06)).verdict(0.03) == "same"
    assert against.Pair(timed(1.0, 0.04), timed(factor, 0.04)).verdict(0.03) != "same"


def test_slower_is_status_1_and_is_listed_first(tmp_path, capsys):
    then = [timed(1.0, design=name) for name in ("naive", "tiled", "staged")]
    now = [timed(0.8, design="naive"), timed(1.25, design="tiled"), timed(1.001, design="staged")]
    assert status(tmp_path, then, now) == 1
    out = capsys.readouterr().out
    slower, faster = (next(line for line in out.splitlines() if word in line) for word in ("tiled", "naive"))
    assert slower.split()[-4:] == ["1000.00", "1250.00", "+25.0%", "slower"] and out.index(slower) < out.index(faster)
    assert faster.split()[-2:] == ["-20.0%", "faster"]
    assert "staged" not in out
    assert "3 rows compared: 0 failed, 1 slower, 1 faster, 1 same (within 2 % or the spreads); 0 without a partner" in out


def test_the_threshold_is_a_percentage(tmp_path):
    assert status(tmp_path, [timed(1.0)], [timed(1.25)], "--threshold", "24") == 1
    assert status(tmp_path, [timed(1.0)], [timed(1.25)], "--threshold", "26") == 0


def test_nothing_slower_is_status_0(tmp_path):
    assert status(tmp_path, [timed(1.0)], [timed(0.5)]) == 0


@pytest.mark.parametrize("field", ["op", "case", "implementation", "design"])
def test_another_row_is_no_partner(tmp_path, capsys, field):
    then, now = [timed(1.0), timed(1.0, **{field: "other"})], [timed(1.0), timed(2.0, **{field: "another"})]
    assert status(tmp_path, then, now) == 0
    assert "1 rows compared" in (out := capsys.readouterr().out) and "2 without a partner" in out


def test_calls_in_a_row_are_not_compared_with_single_ones(tmp_path, capsys):
    then = [timed(1.0, calls=1), timed(1.0, case="other", calls=20)]
    assert status(tmp_path, then, [timed(2.0, calls=30), timed(1.0, case="other", calls=25)]) == 0
    assert "1 rows compared" in (out := capsys.readouterr().out) and "2 without a partner" in out


def test_the_same_config_comes_first_and_another_one_is_named(tmp_path, capsys):
    then = [timed(1.0, config={"BLOCK": 4}), timed(3.0, config={"BLOCK": 8})]
    assert status(tmp_path, then, [timed(1.0, config={"BLOCK": 4})]) == 0
    assert status(tmp_path, then[:1], [timed(2.0, config={"BLOCK": 16})]) == 1
    assert "slower, with another config" in capsys.readouterr().out


def test_a_row_that_fails_now_is_status_1(tmp_path, capsys):
    failed = dataclasses.replace(record(), ok=False, median_ms=None, message="the error exceeds its bound")
    assert status(tmp_path, [timed(1.0)], [failed]) == 1
    assert "failed: the error exceeds its bound" in capsys.readouterr().out


def test_a_row_that_failed_then_has_no_time(tmp_path):
    assert status(tmp_path, [timed(1.0, ok=False), timed(1.0, case="other")], [timed(9.0), timed(1.0, case="other")]) == 0


def test_nothing_in_common_is_no_pass(tmp_path, capsys):
    assert status(tmp_path, [timed(1.0, case="other")], [timed(1.0)]) == 1
    assert "0 rows compared" in capsys.readouterr().out


def test_another_gpu_and_a_change_of_torch_are_told(tmp_path, capsys):
    now = [timed(1.0, target="h100"), timed(1.1, implementation="torch", target="h100")]
    status(tmp_path, [timed(1.0), timed(1.0, implementation="torch")], now)
    out = capsys.readouterr().out
    assert "Not the same GPU: h200 then, h100 now." in out and "torch's own times changed by +10.0% (median)" in out


@pytest.mark.parametrize(
    "text, says",
    [
        (None, "cannot read"),
        ("{", "has no records of perf compare"),
        ("[]", "has no records of perf compare"),
        ('{"environments": [], "records": []}{', "has no records of perf compare"),
        ('{"environments": [{}], "records": [{"environment": 0, "speed": 3}]}', "has no records of perf compare"),
        ('{"environments": [], "records": [{"environment": 0}]}', "has no records of perf compare"),
    ],
)
def test_a_file_that_cannot_be_read_is_status_2_before_the_first_kernel(tmp_path, monkeypatch, capsys, text, says):
    monkeypatch.setattr(contenders, "device", lambda: pytest.fail("it went on"))
    if text is not None:
        (tmp_path / "then.json").write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["compare", "--against", str(tmp_path / "then.json")])
    assert stop.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--records", "{}", "--json", "{}"], "nothing is measured"),
        (["--against", "{}"], "without a GPU nothing is timed"),
        (["--against", "{}", "--threshold", "-1"], "percentage from 0 up"),
        (["--against", "{}", "--threshold", "nan"], "percentage from 0 up"),
        (["--against", "{}", "--threshold", "few"], "--threshold"),
    ],
)
def test_bad_arguments(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.setattr(contenders, "device", lambda: torch.device("cpu"))
    records.write_json(tmp_path / "r.json", [timed(1.0)])
    with pytest.raises(SystemExit) as stop:
        main(["compare", *(argument.format(tmp_path / "r.json") for argument in arguments)])
    assert stop.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize("ms, expected", [(1.0, 0), (2.0, 1)])
def test_a_run_is_compared_too(tmp_path, monkeypatch, capsys, ms, expected):
    class Measured:
        def __init__(self, *args):
            self.records, self.refusals = [], []

        def run(self, case):
            self.records = [timed(ms, bound_by="memory", gbps=1.0)]

    monkeypatch.setattr(contenders, "device", lambda: torch.device("cuda"))
    monkeypatch.setattr(ahead, "build_all", lambda *_: None)
    monkeypatch.setattr(compare, "Comparison", Measured)
    monkeypatch.setattr(compare, "Monitor", contextlib.nullcontext)
    records.write_json(tmp_path / "then.json", [timed(1.0)])
    assert main(["compare", "--op", "gemv", "--against", str(tmp_path / "then.json")]) == expected
    assert "1 rows compared" in capsys.readouterr().out
