"""python -m perf compare from the outside: what it prints, writes and returns, with right designs and with wrong ones."""

import functools
from dataclasses import replace

import pytest
import torch
from stand_ins import record, right

import cuda_reference
import tritonkernels
from perf.__main__ import main
from perf.measure import ahead, baselines, compare, contenders, records
from perf.measure.comparison import GpuLost
from perf.measure.suites import SUITES
from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

GEMV = ("compare", "--op", "gemv")


@pytest.mark.usefixtures("triton_only")
def test_smoke_passes(capsys, tmp_path):
    assert main([*GEMV, "--json", str(tmp_path / "r.json"), "--csv", str(tmp_path / "r.csv"), "--seed", "4"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "33 rows, 33 ok, 0 failed, 3 refused, 0 GPU-only cases not run"  # lessons refuse float64
    rows = records.read_json(tmp_path / "r.json")
    designs = LIBRARY.names("gemv")
    assert [(r.implementation, r.design, r.backend) for r in rows[: len(designs) + 1]] == [
        *(("triton", name, "interpreter") for name in designs),
        ("torch", "addmv", "torch-cpu"),
    ]
    for r in rows:
        assert r.ok
        assert r.error < r.bound and (r.error > 0 or r.implementation == "torch")  # of float64 it is the reference
        assert (r.op, r.suite, r.seed, r.median_ms, r.ratio_to_torch) == ("gemv", "smoke", 4, None, None)
        assert r.problem["m"] > 0
        assert r.environment["torch"]
    assert rows[0].config["BLOCK_M"] > 0
    assert (tmp_path / "r.csv").read_text().count("\n") == 34


@pytest.mark.usefixtures("triton_only")
def test_every_operation_has_both_packages_and_torch(monkeypatch):
    monkeypatch.setattr(contenders, "PACKAGES", {"triton": "tritonkernels", "cuda": "cuda_reference"})
    for op in OPS:
        assert [c.implementation for c in contenders.contenders(op)][-1] == "torch"
        assert {c.implementation for c in contenders.contenders(op)} == {"triton", "cuda", "torch"}


@pytest.mark.usefixtures("triton_only")
def test_a_design_can_be_singled_out(capsys):
    assert main(["compare", "--op", "conv2d", "gemv", "--design", "naive"]) == 0
    out = capsys.readouterr().out
    assert "naive" in out
    assert "direct" not in out
    assert "warp_per_row" not in out
    assert "addmv" in out


@pytest.mark.usefixtures("triton_only")
def test_torch_runs_on_the_operations_that_have_the_design(capsys, monkeypatch):
    run = []
    monkeypatch.setattr(compare.Comparison, "run", lambda self, case: run.append(case.op))
    assert main(["compare", "--design", "warp_per_row", "tiled", "--quiet"]) == 0
    assert set(run) == {"gemv", "gemm", "matmul"}


@pytest.fixture
def for_the_choice(monkeypatch):
    """The suite `smoke` of a few products, compared as a call gets them that names no design: {name: case}."""
    products = [replace(case, chosen=True) for case in SUITES["smoke"] if case.op == "matmul"][:3]
    monkeypatch.setitem(SUITES, "smoke", products)
    return {case.name: case for case in products}


@pytest.mark.usefixtures("triton_only", "for_the_choice")
def test_a_named_design_is_compared_where_a_case_is_for_the_choice_too(tmp_path):
    main(["compare", "--design", "tiled", "--json", str(tmp_path / "r.json")])
    rows = [r for r in records.read_json(tmp_path / "r.json") if r.implementation == "triton"]
    assert rows and {r.design for r in rows} == {"tiled"}


untimed = functools.partial(record, median_ms=None)
RECORDS = [
    untimed(),
    untimed(design="naive"),
    untimed(implementation="cuda", design="naive"),
    untimed(implementation="torch", design="addmv"),
    untimed(op="gemm", design="tiled"),
    untimed(op="gemm", implementation="torch", design="addmm"),
    untimed(op="conv2d", suite="image", design="naive"),
]


@pytest.mark.parametrize(
    "arguments, left",
    [
        ([], range(7)),
        (["--op", "gemm"], (4, 5)),
        (["--op", "gemm", "conv2d"], (4, 5, 6)),
        (["--design", "naive"], (1, 2, 3, 6)),
        (["--design", "naive", "--op", "gemv", "--implementation", "triton"], (1, 3)),
        (["--implementation", "cuda"], (2, 3)),
        (["--suite", "image"], (6,)),
    ],
    ids=lambda value: " ".join(map(str, value)) or "all",
)
def test_records_are_those_that_are_asked_for(tmp_path, capsys, arguments, left):
    records.write_json(tmp_path / "r.json", RECORDS)
    assert main(["compare", "--records", str(tmp_path / "r.json"), "--csv", str(tmp_path / "r.csv"), *arguments]) == 0
    there = records.read_json(tmp_path / "r.json")
    records.write_csv(tmp_path / "wanted.csv", [there[at] for at in left])
    assert (tmp_path / "r.csv").read_text() == (tmp_path / "wanted.csv").read_text()
    assert f"{len(left)} rows, " in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--design", "tield"], "unknown 'tield' for these records (choose from tiled, warp_per_row, naive)"),
        (["--op", "conv2d", "--design", "tiled"], "unknown 'tiled' for these records (choose from naive)"),
        (["--op", "matmul"], "argument --records: no row is what --suite, --op, --design and --implementation ask for"),
        (["--peers", "all"], "argument --peers: nothing is measured with --records"),
        (["--list"], "argument --list: nothing is measured with --records"),
    ],
)
def test_records_do_not_have_what_is_not_there(tmp_path, capsys, arguments, says):
    records.write_json(tmp_path / "r.json", RECORDS)
    with pytest.raises(SystemExit) as stopped:
        main(["compare", "--records", str(tmp_path / "r.json"), *arguments])
    assert stopped.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.usefixtures("triton_only")
def test_cases_for_a_gpu_are_counted(capsys, monkeypatch):
    monkeypatch.setattr(compare.Comparison, "run", lambda self, case: None)
    main(["compare", "--suite", "seeds"])
    assert capsys.readouterr().out.splitlines()[-1].endswith("11 GPU-only cases not run")


def wrong_element(problem, a, x, y, out):
    right(problem, a, x, y, out)
    out[-1] += 1.0


def partly_unwritten(problem, a, x, y, out):
    saved = out[-1].item()
    right(problem, a, x, y, out)
    out[-1] = saved


def zeros(problem, a, x, y, out):
    out.zero_()


def crash(problem, a, x, y, out):
    raise ValueError("the kernel broke [here]")


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (wrong_element, "the error exceeds its bound"),
        (partly_unwritten, "1 of 131 elements were not written"),
        (zeros, "the error exceeds its bound"),
        (crash, "ValueError: the kernel broke [here]"),
    ],
)
def test_a_broken_design_fails_the_run(gemv_does, capsys, tmp_path, act, says):
    gemv_does(act)
    assert main([*GEMV, "--json", str(tmp_path / "r.json")]) == 1
    out = capsys.readouterr().out
    assert f"FAILED: gemv 131x16, triton stand_in: {says}" in out
    assert out.splitlines()[-1].startswith("8 rows, 4 ok, 4 failed")
    rows = records.read_json(tmp_path / "r.json")
    assert [r.ok for r in rows] == [False, True] * 4  # torch still counts, and judges itself
    assert says in rows[0].message


def test_the_same_stand_in_passes_when_it_is_right(gemv_does):
    gemv_does(right)
    assert main([*GEMV]) == 0


def test_the_commit_of_a_copy_without_its_repository(gemv_does, tmp_path):
    gemv_does(right)
    assert main([*GEMV, "--json", str(tmp_path / "r.json"), "--commit", "abc"]) == 0
    assert {r.environment["commit"] for r in records.read_json(tmp_path / "r.json")} == {"abc"}


def test_where_a_case_is_for_the_choice_each_package_has_one_row(tmp_path, for_the_choice):
    """The row of the design that `explain` names."""
    assert main(["compare", "--json", str(tmp_path / "r.json")]) == 0
    rows = records.read_json(tmp_path / "r.json")
    by_case = {}
    for r in rows:
        by_case.setdefault(r.case, {}).setdefault(r.implementation, []).append(r.design)
    assert by_case.keys() == for_the_choice.keys()
    for name, case in for_the_choice.items():
        args, kwargs = case.arguments(0, torch.device("cpu"))
        for implementation, package in (("triton", tritonkernels), ("cuda", cuda_reference)):
            assert by_case[name][implementation] == [package.explain("matmul", *args, **kwargs)["design"]]


def test_a_wrong_torch_fails_too(gemv_does, monkeypatch, capsys):
    gemv_does(right)
    monkeypatch.setitem(baselines.BASELINES, "gemv", (("addmv", lambda *args, out, **kwargs: out.zero_(), True),))
    assert main([*GEMV]) == 1
    assert "FAILED: gemv 131x16, torch addmv" in capsys.readouterr().out


def test_a_changed_operand_is_restored_for_the_next_design(gemv_does, capsys):
    def spoil_and_crash(problem, a, x, y, out):
        a.zero_()
        raise ValueError

    gemv_does(spoil_and_crash)
    assert main([*GEMV]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("8 rows, 4 ok")


def test_refusals_are_counted_and_listed_on_request(gemv_does, capsys):
    gemv_does(right, refuses=lambda problem, target: "it is narrow" if problem.n > 1000 else None)
    assert main([*GEMV]) == 0
    (counted,) = [line for line in capsys.readouterr().out.splitlines() if "--refusals" in line]
    assert counted == "Refused: 1, by designs that are not for the case; --refusals says why"
    assert main([*GEMV, "--refusals"]) == 0
    out = capsys.readouterr().out
    (refused,) = [line for line in out.splitlines() if line.startswith("Refused: ")]
    assert refused.startswith("Refused: gemv 77x1030, triton stand_in:")
    assert "it is narrow" in refused
    assert out.splitlines()[-1].startswith("7 rows, 7 ok, 0 failed, 1 refused") and "--refusals" not in out


def test_a_lost_gpu_ends_the_run_but_keeps_its_records(gemv_does, monkeypatch, capsys, tmp_path):
    gemv_does(right)
    whole = compare.Comparison.run

    def run(self, case):
        whole(self, case)
        if case.name == "77x1030":
            raise GpuLost("an illegal memory access")

    monkeypatch.setattr(compare.Comparison, "run", run)
    assert main([*GEMV, "--json", str(tmp_path / "r.json")]) == 1
    assert len(records.read_json(tmp_path / "r.json")) == 6
    assert "an illegal memory access" in capsys.readouterr().out


def test_ctrl_c_keeps_the_cases_before_it(gemv_does, monkeypatch, capsys, tmp_path):
    gemv_does(right)
    whole = compare.Comparison.run

    def run(self, case):
        whole(self, case)
        if case.name == "77x1030":
            raise KeyboardInterrupt

    monkeypatch.setattr(compare.Comparison, "run", run)
    files = "--json", str(tmp_path / "r.json"), "--csv", str(tmp_path / "r.csv")
    assert main([*GEMV, *files]) == 130
    assert {r.case for r in records.read_json(tmp_path / "r.json")} == {"131x16", "67x45 float64"}
    assert (tmp_path / "r.csv").read_text().count("\n") == 5
    out = capsys.readouterr().out.splitlines()
    assert out[-2] == "Stopped by Ctrl-C at gemv 77x1030: the cases before it are kept"
    assert out[-1].startswith("4 rows, 4 ok") and sum("stand_in" in line for line in out) == 2


def test_ctrl_c_elsewhere_is_one_line(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(contenders, "device", interrupted)
    assert main([*GEMV]) == 130
    assert capsys.readouterr() == ("", "Stopped by Ctrl-C.\n")


@pytest.fixture
def nothing_runs(monkeypatch):
    monkeypatch.setattr(compare.Comparison, "run", lambda self, case: pytest.fail("it ran"))
    monkeypatch.setattr(ahead, "build_all", lambda *_: pytest.fail("it built"))


@pytest.mark.usefixtures("triton_only", "nothing_runs")
def test_cases_and_designs_are_listed_without_running(capsys):
    assert main(["compare", "--list", "--suite", "seeds", "--op", "gemv", "gemm"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("gemm\n    512x512x512\n    1024x1024x1024 (on a GPU only)\n") and "\ngemv\n    16384x16\n" in out
    assert f"  triton: {', '.join(LIBRARY.names('gemv'))}\n  torch: addmv\n" in out
    assert main(["compare", "--list", "--op", "gemv", "--design", "naive"]) == 0
    assert "  triton: naive\n" in capsys.readouterr().out


@pytest.mark.usefixtures("nothing_runs")
def test_one_implementation_is_listed_alone_and_only_its_designs_can_be_named(capsys):
    assert main(["compare", "--list", "--op", "gemv", "--implementation", "triton"]) == 0
    out = capsys.readouterr().out
    assert "triton:" in out and "cuda:" not in out and "torch:" in out


def test_one_implementation_runs_alone(monkeypatch, capsys):
    monkeypatch.setattr(ahead.build, "load", lambda *_: pytest.fail("it built kernels that nobody runs"))
    assert main([*GEMV, "--implementation", "triton", "--design", "vectorized"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("8 rows, 8 ok") and "cuda" not in out


def test_quiet_says_failures_and_the_counts(gemv_does, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes a terminal of standard error for rich, which draws bars
    gemv_does(wrong_element)
    assert main([*GEMV, "--quiet"]) == 1
    printed = capsys.readouterr()
    out = printed.out.splitlines()
    assert printed.err == ""
    assert [line.partition(":")[0] for line in out[:-1]] == ["FAILED"] * 4 and out[-1].startswith("8 rows, 4 ok, 4 failed")


@pytest.mark.usefixtures("nothing_runs")
def test_records_are_shown_without_measuring(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(contenders, "device", lambda: pytest.fail("it asked for the GPU"))
    records.write_json(tmp_path / "a.json", [record(case="first", median_ms=None)])
    records.write_json(tmp_path / "b.json", [record(case="second", median_ms=None, ok=False, message="it is wrong")])
    files = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    assert main(["compare", "--records", files[0]]) == 0
    assert main(["compare", "--records", *files, "--csv", str(tmp_path / "r.csv")]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-2:] == ["FAILED: gemv second, triton warp_per_row: it is wrong", "2 rows, 1 ok, 1 failed"]
    assert (tmp_path / "r.csv").read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        (["compare", "--op", "gem"], "gemm"),
        (["compare", "--suite", "seed"], "seeds"),
        (["compare", "--op", "gemv", "--design", "tiled"], "warp_per_row"),
        (["compare", "--seed", "one"], "invalid int"),
        (["compare", "--op", "gemv", "--implementation", "torch"], "triton"),
        (["compare", "--json", "/no/such/folder/r.json"], "cannot write"),
        (["errors", "--json", "/no/such/folder/r.json"], "cannot write"),
        (["torch", "--json", "/no/such/folder/r.json"], "cannot write"),
        (["inspect", "gemm", "--json", "/no/such/folder/r.json"], "cannot write"),
        (["contrast"], "compare"),
        ([], "command"),
        (["campaign", "--out", "x", "--minutes", "0"], "positive number of minutes"),
        (["campaign", "--out", f"{__file__}/x", "--minutes", "1"], "is no folder"),
        (["sweep", "gemm", "--out", f"{__file__}/x"], "is no folder"),
    ],
)
@pytest.mark.usefixtures("triton_only")
def test_bad_arguments(arguments, known, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert known in capsys.readouterr().err
