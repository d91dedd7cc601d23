"""perf tune on a simulated GPU: each case once, then from the table; files of shapes; arguments that are none."""

import json

import pytest
import torch

import tritonkernels.launch
from perf.__main__ import main
from perf.measure import cases, contenders, tune
from perf.measure.cases import gemv, matmul
from tests.choice.stand_ins import SimulatedGpu, built, library, right
from tritonkernels.choice import builds, tuner
from tritonkernels.choice.shipped import ShippedTable
from tritonkernels.choice.table import UserTable
from tritonkernels.explanation import explain

CASES = [gemv(64, 48), gemv(200, 16)]
CPU = torch.device("cpu")


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(tmp_path / "tuning.json"))
    gpu = SimulatedGpu()
    served = library(gpu, wrong=[(1e-5, lambda a, x, out: None)], fast=[(5e-5, right)], default=[(1e-4, right)])
    monkeypatch.setattr(tritonkernels.launch, "LIBRARY", served)
    monkeypatch.setattr(tuner, "GpuClock", lambda device: gpu)
    monkeypatch.setattr(builds, "run", built)
    return served


def run(again=False, cases=CASES, budget=60.0, ship=False):
    return tune.run(cases, ["tritonkernels"], CPU, budget, again, ship)


def test_each_case_is_tuned_once(served, capsys):
    assert run() == 0
    printed = capsys.readouterr().out
    assert "2 tuned, 0 were in the table, 0 failed" in printed and printed.count("fast number=0") == 2 and "2.0" in printed
    served.tuned = UserTable()  # a new process
    assert run() == 0
    assert "0 tuned, 2 were in the table, 0 failed" in capsys.readouterr().out
    assert run(again=True) == 0
    assert "2 tuned, 0 were in the table" in capsys.readouterr().out


def test_ctrl_c_shows_and_keeps_the_cases_before_it(served, capsys, monkeypatch):
    whole = tuner.tune

    def tune_(*args):
        if done:
            raise KeyboardInterrupt
        done.append(args)
        return whole(*args)

    done = []
    monkeypatch.setattr(tuner, "tune", tune_)
    assert run() == 130
    printed = capsys.readouterr().out
    assert "fast number=0" in printed and "Stopped by Ctrl-C at tritonkernels.gemv 200x16" in printed and "1 tuned" in printed
    monkeypatch.setattr(tuner, "tune", whole)
    assert run() == 0
    assert "1 tuned, 1 were in the table" in capsys.readouterr().out


def test_a_tuning_that_was_not_finished_goes_on(served, capsys, monkeypatch):
    monkeypatch.setattr(tuner, "TRIALS", 1e-4)  # the first candidate, and no more
    run(cases=CASES[:1], budget=1.0)
    assert "1 of 3" in capsys.readouterr().out
    monkeypatch.setattr(tuner, "TRIALS", 0.8)
    run(cases=CASES[:1])
    assert "3 of 3" in capsys.readouterr().out


def test_what_is_shipped_is_chosen_where_the_user_has_nothing(served, tmp_path, capsys, monkeypatch):
    """Also what was tuned before, and in the end without the user's table."""
    served.shipped = ShippedTable(tmp_path)
    assert run(cases=CASES[:1]) == 0 and not served.shipped.path("h200").exists()
    assert run(ship=True) == 0
    assert "1 tuned, 1 were in the table, 0 failed" in capsys.readouterr().out
    assert served.shipped.path("h200").read_text().count('"design": "fast"') == 2
    served.tuned, served.shipped = UserTable(), ShippedTable(tmp_path)
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(tmp_path / "none.json"))
    for m, n in ((64, 48), (200, 16)):
        printed = explain(served, "gemv", torch.randn(m, n), torch.randn(n))
        assert (printed["design"], printed["chosen_by"]) == ("fast", "shipped table")


def test_a_table_that_cannot_be_shipped_ends_it(served, tmp_path, capsys):
    served.shipped = ShippedTable(tmp_path)
    served.shipped.path("h200").parent.mkdir()
    served.shipped.path("h200").write_text("{")
    assert run(ship=True) == 1
    printed = capsys.readouterr().out
    assert printed.count("FAILED") == 1 and "the shipped table cannot be written" in printed and "1 tuned" in printed


def test_refusals_and_failures_are_named_and_counted(served, capsys, monkeypatch):
    served.misses = lambda target: "no compiler"
    assert run() == 0
    assert "Refused: tritonkernels.gemv 64x48: " in capsys.readouterr().out
    served.misses = lambda target: None
    monkeypatch.setenv("TRITONKERNELS_TUNING", "off")
    assert run() == 1
    printed = capsys.readouterr().out
    assert printed.count("FAILED") == 1 and "TRITONKERNELS_TUNING is off" in printed, "no other case could be kept either"


def test_a_file_of_shapes(tmp_path):
    file = tmp_path / "shapes.json"
    file.write_text(
        json.dumps([{"m": 8, "n": 16, "k": 24, "dtype": "float16", "b": "col", "batch": [3], "out_dtype": "float32"}])
    )
    (case,) = cases.read("matmul", file)
    assert case == matmul(8, 16, 24, torch.float16, b="col", batch=(3,), out_dtype=torch.float32)


@pytest.mark.parametrize(
    "op, text, said",
    [
        ("matmul", "[", "Expecting value"),
        ("matmul", '{"m": 1}', "not a JSON list of objects"),
        ("matmul", '[{"m": 1, "n": 2}]', "missing 1 required positional argument: 'k'"),
        ("matmul", '[{"m": 1, "n": 2, "k": 3, "dtype": "half16"}]', "'half16' is no dtype of torch"),
        ("gemv", '[{"m": 1, "n": 2, "dtype": "nn"}]', "no dtype"),
        ("conv2d_bias", "[]", "cases can be written for gemm, gemv, conv2d, matmul"),
    ],
)
def test_a_file_that_is_none_is_an_error(tmp_path, capsys, op, text, said):
    file = tmp_path / "shapes.json"
    file.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["tune", op, "--shapes", str(file)])
    assert stop.value.code == 2 and said in capsys.readouterr().err


def test_arguments_that_are_none(tmp_path, capsys, triton_only):
    for arguments, said in (
        (["gemv"], "one of the arguments --suite --shapes is required"),
        (["gem", "--suite", "gemv"], "invalid choice: 'gem'"),
        (["gemv", "--suite", "gemv", "--budget", "0"], "0 is not a positive number of seconds"),
        (["conv2d", "--suite", "gemv"], "gemv has no case of conv2d"),
        (["gemv", "--shapes", str(tmp_path / "none.json")], "No such file"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["tune", *arguments])
        assert stop.value.code == 2 and said in capsys.readouterr().err


def test_without_a_gpu(capsys, triton_only):
    if contenders.device().type == "cuda":
        pytest.skip("there is one")
    assert main(["tune", "gemv", "--suite", "gemv"]) == 2
    assert "needs a GPU" in capsys.readouterr().err
