"""The campaign with stand-in steps: isolation, deadline, resumption, and its records. Needs no GPU."""

import json
import sys
import time
import types

import pytest
from stand_ins import record

from perf.__main__ import main
from perf.measure import campaign, kernels, records
from perf.measure.campaign import Step
from tests.harness import thorough


def step(name, code, share=1.0, **more):
    return Step(name, (sys.executable, "-c", code), share, **more)


def run(steps, out, seconds=60, commit="abc", device="h200", gpus=("0",), **more):
    return {o.name: o for o in campaign.Campaign(steps, out, seconds, commit, device, **more).run(gpus)}


def test_a_crash_does_not_hurt_the_next_step(tmp_path):
    steps = [
        step("fails", "print('so it goes'); raise SystemExit(3)"),
        step("dies", "import os; os.kill(os.getpid(), 11)"),
        step("works", "print('hello')"),
    ]
    outcomes = run(steps, tmp_path)
    assert [(o.status, o.note) for o in outcomes.values()] == [
        ("failed", "exit status 3"),
        ("failed", "signal SIGSEGV"),
        ("passed", ""),
    ]
    assert (tmp_path / "works.log").read_text() == "hello\n"


def test_a_hang_is_killed_at_its_share_with_its_children(tmp_path):
    alive = tmp_path / "alive"
    child = f"import time; time.sleep(3); open({str(alive)!r}, 'w')"
    hangs = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    outcomes = run([step("hangs", hangs, share=0.05), step("works", "pass")], tmp_path, seconds=30)
    assert outcomes["hangs"].status == "killed"
    assert outcomes["works"].status == "passed"
    time.sleep(3)
    assert not alive.exists()


def test_past_the_deadline_nothing_starts(tmp_path):
    outcomes = run([step("long", "import time; time.sleep(60)"), step("late", "print('never')")], tmp_path, seconds=0.5)
    assert outcomes["long"].status == "killed"
    assert (outcomes["late"].status, outcomes["late"].note) == ("not run", "no time was left")
    assert not (tmp_path / "late.log").exists()


def count(tmp_path):
    """A step that counts its runs, and a function that returns the count."""
    file = tmp_path / "count"
    code = f"open({str(file)!r}, 'a').write('x')"
    return code, lambda: len(file.read_text())


def test_passed_steps_are_not_repeated(tmp_path):
    code, times = count(tmp_path)
    steps = [step("once", code)]
    assert run(steps, tmp_path)["once"].status == "passed"
    assert run(steps, tmp_path)["once"].status == "passed"
    assert times() == 1
    entries = json.loads((tmp_path / "campaign.json").read_text())
    assert [(e["name"], e["commit"], e["device"]) for e in entries] == [("once", "abc", "h200")]


@pytest.mark.parametrize("change", [{"commit": "abd"}, {"device": "h100"}])
def test_another_commit_or_gpu_repeats_it(tmp_path, change):
    code, times = count(tmp_path)
    steps = [step("again", code)]
    run(steps, tmp_path)
    run(steps, tmp_path, **change)
    assert times() == 2


def test_failed_steps_are_repeated(tmp_path):
    code, times = count(tmp_path)
    steps = [step("fails", code + "; raise SystemExit(1)")]
    run(steps, tmp_path)
    run(steps, tmp_path)
    assert times() == 2


def test_a_repeated_step_does_not_show_an_older_attempts_records(tmp_path):
    records.write_json(tmp_path / "r.json", [record()])
    run([step("fails", "raise SystemExit(1)", records="r.json")], tmp_path)
    assert not (tmp_path / "r.json").exists()


def test_the_summary_is_complete(tmp_path):
    environment = {"device": "H200", "torch": "2.13", "triton": "3.7", "commit": "abc", "date": "today", "command": "c"}
    kept = [
        record(environment=environment, p20_ms=0.2, p80_ms=0.3, gbps=3000.0, bound_by="memory", ratio_to_torch=1.5),
        record(environment=environment, median_ms=None, design="broken", ok=False, message="the error exceeds its bound"),
    ]
    records.write_json(tmp_path / "source", kept)
    measure = f"import shutil; shutil.copy({str(tmp_path / 'source')!r}, {str(tmp_path / 'r.json')!r})"
    steps = [
        step("measures", measure, records="r.json"),
        step("fails", "print('the last words'); raise SystemExit(1)"),
        step("hangs", "import time; time.sleep(60)", share=0.02),
    ]
    run(steps, tmp_path, seconds=20)
    text = (tmp_path / "summary.md").read_text()
    for part in ("| measures | passed |", "| 1.50 |", "FAILED: gemv 3x4, triton broken: the error exceeds", "the last words"):
        assert part in text
    for part in ("| fails | failed |", "| hangs | killed |", "H200, torch 2.13"):
        assert part in text


def test_the_summary_exists_while_steps_are_pending(tmp_path):
    looks = f"raise SystemExit('to come' not in open({str(tmp_path / 'summary.md')!r}).read())"
    assert run([step("first", "pass"), step("looks", looks)], tmp_path)["looks"].status == "passed"


def test_the_plan_in_order_of_worth(tmp_path):
    names = [s.name for s in campaign.plan(tmp_path)]
    assert names == [
        "doctor",
        "gate",
        "smoke",
        "classes",
        "models",
        "errors",
        "torch",
        "seeds",
        "ladder",
        "hopper",
        "precision",
        "gemv",
        "image",
        "grouped",
        "resnet50",
        "square",
        "fp8",
        "skinny",
        "llm",
        "unaligned",
        *(f"sweep-{op}" for op in ("gemm", "gemv", "matmul", "conv2d", "conv2d_weight", "conv2d_input")),
    ]


def test_what_is_older_than_its_kernels_is_renewed_most_rows_first(tmp_path, monkeypatch):
    """In one folder or the other; all of it if someone asks."""
    monkeypatch.setattr(kernels, "digests", lambda: {"gemv": "today", "gemm": "today"})
    recorded, out = tmp_path / "recorded", tmp_path / "out"

    def write(folder, suite, ages, **changes):
        folder.mkdir(exist_ok=True)
        rows = [record(environment={"kernels": {"gemv": age}}, case=str(i), **changes) for i, age in enumerate(ages)]
        records.write_json(folder / f"{suite}.json", rows)

    write(recorded, "gemv", ["today", "today"])
    write(recorded, "llm", ["today", "before"])
    write(recorded, "square", ["before"] * 3)
    write(recorded, "image", ["before"] * 9)
    write(out, "image", ["today"])
    write(recorded, "skinny", [])
    write(recorded, "cut off", ["today", "today"])
    write(recorded, "wrong", ["today", "today"], ok=False)
    (recorded / "grouped.json").write_text("{")
    cases = {"gemv": 2, "llm": 2, "square": 3, "image": 1, "skinny": 1, "grouped": 1, "cut off": 7, "wrong": 2}
    case = types.SimpleNamespace
    suites = {suite: [case(op="gemv", name=str(i)) for i in range(count)] for suite, count in cases.items()}
    monkeypatch.setattr(campaign, "SUITES", {"smoke": [], **suites})
    steps = [step for step in campaign.plan(out, recorded) if step.records]
    older_first = ["skinny", "grouped", "cut off", "square", "wrong", "llm", "gemv", "image"]
    assert [step.name for step in steps] == ["smoke", "classes", *older_first]
    assert [step.name for step in steps if step.current] == ["gemv", "image"]


def test_current_records_are_not_renewed_even_after_a_failed_gate(tmp_path):
    code, times = count(tmp_path)
    outcomes = run([step("has", code, current=True), step("lacks", code)], tmp_path)
    assert (outcomes["has"].status, times()) == ("current", 1)


def test_after_a_failed_gate_nothing_is_measured(tmp_path):
    assert [s.name for s in campaign.plan(tmp_path) if s.gate] == ["gate"]
    code, times = count(tmp_path)
    steps = [step("before", "raise SystemExit(1)"), step("gate", "raise SystemExit(1)", gate=True), step("measures", code)]
    outcomes = run(steps, tmp_path)
    assert (outcomes["gate"].status, outcomes["measures"].status) == ("failed", "not run")
    assert "the gate has failed" in (tmp_path / "summary.md").read_text() and not (tmp_path / "count").exists()
    run(steps, tmp_path, even_if_red=True)
    assert times() == 1


def test_each_gpu_measures_a_step_of_its_own_after_the_gate(tmp_path):
    def meets(name, other):
        """A step that ends well only if the other runs at the same time."""
        here, there = tmp_path / f"{name}.here", tmp_path / f"{other}.here"
        wait = f"open({str(here)!r}, 'w').close()\nwhile not os.path.exists({str(there)!r}): time.sleep(0.01)"
        return step(name, f"import os, time\nprint(os.environ['CUDA_VISIBLE_DEVICES'])\n{wait}", share=0.5)

    alone = f"import os; raise SystemExit(os.path.exists({str(tmp_path / 'a.here')!r}))"
    steps = [step("gate", alone, gate=True), meets("a", "b"), meets("b", "a"), step("c", "pass")]
    outcomes = run(steps, tmp_path, gpus=("3", "5"))
    assert [o.status for o in outcomes.values()] == ["passed"] * 4
    assert {(tmp_path / f"{name}.log").read_text() for name in "ab"} == {"3\n", "5\n"}
    assert {e["name"] for e in json.loads((tmp_path / "campaign.json").read_text())} == {"gate", "a", "b", "c"}


def test_an_interrupt_ends_all_steps_under_way(tmp_path, monkeypatch):
    alive = tmp_path / "alive"
    sleeps = f"import time; time.sleep(3); open({str(alive)!r}, 'w')"
    fails = types.SimpleNamespace(result=lambda: (_ for _ in ()).throw(KeyboardInterrupt))

    class Pool(campaign.ThreadPoolExecutor):
        def submit(self, measure, step):
            running = super().submit(measure, step)
            return fails if step.name == "second" else running

    monkeypatch.setattr(campaign, "ThreadPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt):
        run([step("second", sleeps), step("first", sleeps)], tmp_path, gpus=("0", "1"))
    time.sleep(3.5)
    assert not alive.exists()


@thorough  # which an installed package's is in `make test`, too
def test_the_doctors_command_works(tmp_path):
    doctor = campaign.plan(tmp_path)[0]
    assert run([doctor], tmp_path, seconds=1200)["doctor"].status == "passed", (tmp_path / "doctor.log").read_text()
    assert "triton" in (tmp_path / "doctor.log").read_text()


def test_without_a_gpu(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(campaign.torch.cuda, "is_available", lambda: False)
    assert main(["campaign", "--minutes", "10", "--out", str(tmp_path / "d")]) == 2
    assert "needs a GPU" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_a_dry_run_prints_the_plan_and_does_nothing(tmp_path, capsys):
    assert main(["campaign", "--minutes", "10", "--out", str(tmp_path / "d"), "--dry-run"]) == 0
    assert "seeds: at most 7.0 min" in capsys.readouterr().out
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(("code", "status"), [("pass", 0), ("raise SystemExit(1)", 1)])
def test_exit_status(tmp_path, monkeypatch, code, status):
    monkeypatch.setattr(campaign.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(campaign.torch.cuda, "get_device_name", lambda: "h200")
    monkeypatch.setattr(campaign, "plan", lambda out, recorded: [step("only", code)])
    assert main(["campaign", "--minutes", "1", "--out", str(tmp_path / "new" / "d")]) == status
