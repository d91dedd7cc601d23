"""perf compare --suite classes: what runs, what is kept, what is published, with stand-ins for processes and for gemv."""

import dataclasses
import functools

import pytest
from stand_ins import record, right

from perf.__main__ import main
from perf.measure import class_run, classes, crew, kernels, records, ways
from perf.measure.cases import gemv
from perf.measure.classes import Class
from tritonkernels.errors import UnsupportedError

NAME = "gemv fp32"


class Inline:
    """A worker without a process; `dies` are names of cases."""

    dies = ()

    def __init__(self, work, environment=None):
        self.work, self.task = work, None

    def give(self, task):
        self.task = task

    def receive(self):
        task, self.task = self.task, None
        return ("died", "it ended") if task[0].name in self.dies else ("done", self.work(task, None))

    def end(self):
        pass


@pytest.fixture
def run(monkeypatch, tmp_path, gemv_does, capsys):
    """run(act, *options): (exit status, rows, output) of a class of small gemvs, in Triton alone."""
    monkeypatch.setattr(Inline, "dies", ())
    inline = {"start": Inline, "wait": lambda waiting, seconds: [worker for worker in waiting if worker.task]}
    monkeypatch.setattr(class_run, "Crew", functools.partial(crew.Crew, **inline))
    own = dataclasses.replace(classes.CLASSES[NAME], draw=lambda pick: gemv(pick.randint(3, 60), pick.randint(3, 60)))
    monkeypatch.setitem(classes.CLASSES, NAME, own)

    def go(act, *options, file="r.json", **refuses):
        class_run._comparison.cache_clear()
        gemv_does(act, **refuses)
        path = tmp_path / file
        status = main(["compare", "--suite", "classes", "--class", NAME, "--per-class", "3", "--json", str(path), *options])
        return status, records.read_json(path) if path.exists() else [], capsys.readouterr().out

    return go


def ours(rows):
    return [row for row in rows if row.implementation == "triton"]


def test_each_case_has_a_row_of_the_default_choice_and_torch_s(run):
    status, rows, out = run(right, "--seed", "5")
    assert status == 0 and len(rows) == 6 and all(row.ok for row in rows)
    assert {(row.suite, row.seed, row.implementation, row.design) for row in rows} == {
        ("classes", 5, "triton", "stand_in"),
        ("classes", 5, "torch", "addmv"),
    }
    assert {row.case for row in rows} == {case.name for case in classes.CLASSES[NAME].cases(3, 5)}
    assert out.splitlines()[-1] == "3 cases measured, 0 kept, 0 not run yet, 0 GPU-only not run"


def test_a_second_call_goes_on(run):
    calls = []

    def counted(*args):
        calls.append(1)
        right(*args)

    _, first, _ = run(counted, "--minutes", "1e-9")
    assert first == [] and not calls, "no time was left"
    assert "0 cases measured, 0 kept, 3 not run yet" in run(counted, "--minutes", "1e-9")[2]
    run(counted)
    made = len(calls)
    status, rows, out = run(counted)
    assert (status, len(ours(rows)), len(calls)) == (0, 3, made) and "0 cases measured, 3 kept, 0 not run yet" in out
    _, rows, out = run(counted, "--per-class", "4")
    assert "1 cases measured, 3 kept" in out and len(ours(rows)) == 4
    _, rows, out = run(counted, "--seed", "1")
    assert "3 cases measured, 0 kept" in out and sorted(row.seed for row in ours(rows)) == [0] * 4 + [1] * 3


@pytest.mark.parametrize("change", ["kernels", "device", "package"])
def test_rows_of_other_kernels_another_gpu_or_package_are_not_kept(run, tmp_path, change):
    _, rows, _ = run(right)
    if change == "kernels":
        rows[0].environment["kernels"] = kernels.digests() | {"gemv": "old"}
    elif change == "device":
        rows[0].environment["device"] = "another GPU"
    else:
        rows = [row for row in rows if row.implementation == "torch"]
    records.write_json(tmp_path / "r.json", rows)
    _, rows, out = run(right)
    assert "3 cases measured, 0 kept" in out
    assert len(ours(rows)) == (6 if change == "device" else 3), "another GPU's rows stay, old ones are replaced"


def test_a_wrong_row_of_ours_fails_the_run(run):
    status, rows, out = run(lambda problem, a, x, y, out: out.zero_())
    assert status == 1 and not any(row.ok for row in ours(rows))
    assert out.count("No time: gemv") == 3 and "every element is 0" in out


def test_a_refusal_is_a_row(run):
    def refuse(problem, target):
        return "it is Sunday"

    status, rows, out = run(right, refuses=refuse)
    assert status == 1 and len(ours(rows)) == 3
    assert all(not row.ok and row.message.startswith("refused: ") and "it is Sunday" in row.message for row in ours(rows))
    assert "3 rows without a time" in out


def test_a_wrong_row_of_torch_is_published_and_fails_nothing(run, monkeypatch):
    wrong = ("addmv", lambda a, x, *, out: out.zero_(), True)
    correct = ("another", lambda a, x, *, out: out.copy_(a.double() @ x.double()), True)
    monkeypatch.setitem(ways.WAYS, "gemv", (wrong, correct))
    status, rows, out = run(right)
    assert status == 0 and [row.ok for row in rows if row.design == "addmv"] == [False] * 3
    assert out.count("torch is wrong, and no baseline: gemv gemv fp32: ") == 3 and "3 wrong ones of torch" in out


def test_a_process_that_ends_leaves_a_row_for_each_package(run, monkeypatch):
    (first, *_) = classes.CLASSES[NAME].cases(3, 0)
    monkeypatch.setattr(Inline, "dies", (first.name,))
    status, rows, out = run(right)
    (lost,) = (row for row in rows if row.case == first.name)
    assert (status, lost.implementation, lost.ok, lost.message) == (1, "triton", False, "not run: it ended")
    assert f"gemv {first.name}, Triton : not run: it ended" in out and len(ours(rows)) == 3


def test_an_error_of_the_comparison_itself_is_in_the_rows(run, monkeypatch):
    def fail(self, case):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(class_run.Comparison, "run", fail)
    _, rows, _ = run(right)
    assert [row.message for row in rows] == ["not run: RuntimeError: out of memory"] * 3


def test_a_lost_gpu_keeps_the_rows_before(monkeypatch, triton_only):
    def lose(self, case):
        self.records.append(record(case=case.name))
        raise class_run.GpuLost("misaligned address")

    monkeypatch.setattr(class_run.Comparison, "run", lose)
    class_run._comparison.cache_clear()
    rows, why, is_lost = class_run.measure((gemv(3, 4), 0, None, ("triton",)), None)
    assert [row.case for row in rows] == ["3x4"] and why == "a kernel's fault: misaligned address" and is_lost
    class_run._comparison.cache_clear()


def test_without_a_gpu_large_cases_are_counted(run, monkeypatch):
    own = Class(NAME, lambda pick: gemv(3000, pick.randint(800, 900)), 1.0, 1.0, "torch.mv")
    monkeypatch.setitem(classes.CLASSES, NAME, own)
    assert "0 cases measured, 0 kept, 0 not run yet, 3 GPU-only not run" in run(right)[2]


def test_builds_are_those_of_what_is_chosen(monkeypatch):
    case = gemv(64, 4000)
    found = class_run.builds(case, ("triton", "cuda"), class_run.Target.named("h200"))
    assert {package for _, package, _ in found.values()} == {"tritonkernels", "cuda_reference"}
    assert all(built == case for built, *_ in found.values())
    (sources,) = (key for key in found if isinstance(key, frozenset))
    assert all(header.endswith(".cuh") and expressions for header, expressions in sources)
    assert class_run.builds(case, ("triton",), None) == {}

    def refuse(*args):
        raise UnsupportedError("nothing fits")

    monkeypatch.setattr(class_run.trial, "library", refuse)
    assert class_run.builds(case, ("cuda",), class_run.Target.named("h200")) == {}


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--suite", "smoke", "--class", NAME], "argument --class: it is for --suite classes"),
        (["--minutes", "3"], "argument --minutes: it is for --suite classes"),
        (["--suite", "classes", "--op", "gemv"], "argument --op: it is not for --suite classes"),
        (["--suite", "classes", "--class", "fp128"], "invalid choice: 'fp128'"),
    ],
)
def test_bad_arguments(arguments, says, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *arguments])
    assert stopped.value.code == 2 and says in capsys.readouterr().err


def test_records_are_shown_by_class(tmp_path, capsys):
    rows = [
        record(suite="classes", case=f"{name}: 3x4", implementation=who, design=design, ratio_to_torch=ratio, median_ms=ms)
        for name in ("gemv fp32", "fp64")
        for who, design, ratio, ms in (("triton", "tiled", 0.5, 0.2), ("torch", "mv", 1.0, 0.1))
    ]
    records.write_json(tmp_path / "r.json", rows)
    assert main(["compare", "--records", str(tmp_path / "r.json"), "--suite", "classes", "--class", "fp64"]) == 0
    out = capsys.readouterr().out
    assert "fp64, Triton, against torch.mm:" in out and "gemv fp32" not in out and out.endswith("0 wrong ones of torch\n")


def test_the_list_names_the_cases(capsys):
    assert main(["compare", "--suite", "classes", "--class", "fp64", "tf32", "--per-class", "2", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["matmul tf32", "matmul fp64"] * 2
