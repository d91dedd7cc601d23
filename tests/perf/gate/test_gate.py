"""The gate with stand-in steps: what it records, repeats and refuses. Needs no GPU."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from perf.__main__ import main
from perf.gate import findings, gate, gate_steps, plan, shown, sources
from perf.gate.findings import Findings
from perf.gate.gate_steps import Step
from perf.measure import environment
from perf.processes import Job
from tests import children

VERSIONS = ("gpu", "python", "torch", "triton", "numpy", "cuda", "nvcc")  # written again: what gate.KEY lacks must show
ABOUT = {name: f"some {name}" for name in VERSIONS} | {"commit": "abc", "command": "perf gate", "driver": "580"}
ABOUT |= {"triton": "3.6.0", "left_out": []}


def read(log, used=()):
    """A stand-in prints the names of passed tests, and of failed ones with an exclamation mark."""
    words = log.read_text().split() if log.exists() else []
    bad = {word: "it is wrong" for word in words if word.endswith("!")}
    return Findings(Counter(passed=len(words) - len(bad), failed=len(bad)), bad, used=frozenset(used))


@pytest.fixture(autouse=True)
def digests(monkeypatch):
    """{step: a digest}, "now" for others: the digests of what steps depend on."""
    found = {}
    monkeypatch.setattr(sources, "digest", lambda name, used=(): found.get(name, "now") + "".join(sorted(used)))
    return found


@pytest.fixture
def step(tmp_path):
    def make(name, *codes, instead=None, gpus=1):
        jobs = [Job((sys.executable, "-c", code), tmp_path / f"{name}-{i}.log") for i, code in enumerate(codes)]
        return Step(name, tuple(jobs), read, instead, gpus)

    return make


@pytest.fixture
def visit(tmp_path):
    """visit(steps): one run of them, of `ABOUT` but for some changes; what gate.json says of its Triton then."""

    def visit(*steps, again=False, names=None, minutes=None, **changes):
        about = ABOUT | changes
        visited = gate.Gate(tmp_path / "h200/gate.json", about, names or [s.name for s in steps], minutes)
        visited.run_all(steps, again)
        visited.show()
        return shown.read(tmp_path / "h200/gate.json")[about["triton"]]

    return visit


def counting(tmp_path):
    """A program that counts its runs, and a function that returns the count."""
    file = tmp_path / "count"
    return f"open({str(file)!r}, 'a').write('x'); print('fine')", lambda: len(file.read_text())


MEETS = """
import os, time
from pathlib import Path
Path("{folder}/{me}").touch()
while not Path("{folder}/{other}").exists(): time.sleep(0.05)
print(os.environ["CUDA_VISIBLE_DEVICES"], time.monotonic())
"""


def test_steps_run_side_by_side_on_gpus_of_their_own(visit, step, monkeypatch, tmp_path):
    """Two steps that wait for each other; before them one that needs the whole machine, after them one that needs both GPUs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    tells = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], time.monotonic())"
    first, second = (MEETS.format(folder=tmp_path, me=me, other=other) for me, other in (("a", "b"), ("b", "a")))
    steps = [step("tests-1", first), step("tests-2", second), step("calls", tells, gpus=0), step("two_gpus", tells, gpus=2)]
    outcome = visit(*steps)["steps"]
    assert all(s["status"] == "passed" for s in outcome.values())
    gpus, ended = {}, {}
    for s in steps:
        gpus[s.name], ended[s.name] = s.jobs[0].log.read_text().split()
    assert {gpus["tests-1"], gpus["tests-2"]} == {"3", "5"} and gpus["calls"] == "3,5"
    assert set(gpus["two_gpus"].split(",")) == {"3", "5"}
    order = sorted(ended, key=lambda name: float(ended[name]))
    assert order[0] == "calls" and order[-1] == "two_gpus"


def test_what_is_recorded(visit, step, capsys):
    steps = (
        step("calls", "print('a b')", "print('c d!'); raise SystemExit(1)"),
        step("two_gpus", instead="there is one GPU here"),
    )
    outcome = visit(*steps)
    calls, two_gpus = outcome["steps"].values()
    assert (outcome["gpu"], outcome["commit"], outcome["torch"], outcome["last_passed"]) == (
        "some gpu",
        "abc",
        "some torch",
        None,
    )
    assert (calls["status"], calls["counts"], calls["failures"]) == (
        "failed",
        {"passed": 3, "failed": 1},
        {"d!": "it is wrong"},
    )
    assert (calls["commit"], calls["driver"], calls["command"]) == ("abc", "580", "perf gate") and calls["date"][:2] == "20"
    assert (two_gpus["status"], two_gpus["note"]) == ("skipped", "there is one GPU here")
    printed = capsys.readouterr().out
    assert "gate calls: failed" in printed and "  d!: it is wrong" in printed and "there is one GPU here" in printed


def test_without_rich_the_table_is_plain(visit, step, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    visit(step("calls", "print('a')"))
    assert "calls  passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "code, why",
    [
        ("print('the last words'); raise SystemExit(3)", "exit status 3; its last output: the last words"),
        ("import os; os.kill(os.getpid(), 11)", "signal SIGSEGV"),
        ("pass", "nothing ran"),
    ],
    ids=["fails", "dies", "does nothing"],
)
def test_a_failure_without_a_name_is_one(visit, step, code, why):
    (outcome,) = visit(step("build", code))["steps"].values()
    assert outcome["status"] == "failed" and any(why in text for text in outcome["failures"].values())


def test_a_program_that_is_not_there(visit, tmp_path):
    (outcome,) = visit(Step("memcheck", (Job(("/nowhere/compute-sanitizer",), tmp_path / "m.log"),), read))["steps"].values()
    assert outcome["status"] == "failed" and "/nowhere/compute-sanitizer" in outcome["note"]


def test_a_step_over_its_limit_is_ended(visit, step, monkeypatch, tmp_path):
    monkeypatch.setattr(gate, "LIMIT", 5)
    monkeypatch.setattr(gate, "EVERY", 0)
    (outcome,) = visit(step("tests-1", "import time; print('a b!', flush=True); time.sleep(600)"))["steps"].values()
    assert outcome["status"] == "failed" and outcome["seconds"] < 60
    assert set(outcome["failures"]) == {"b!", "tests-1-0"}
    assert "killed after 5 s, its limit; its last output: a b!" in outcome["failures"]["tests-1-0"]


def test_passed_steps_are_not_repeated(visit, step, tmp_path):
    code, times = counting(tmp_path)
    steps = step("once", code), step("fails", code + "; raise SystemExit(1)")
    assert visit(*steps)["steps"]["once"]["status"] == "passed" and times() == 2
    visit(*steps)
    assert times() == 3
    visit(*steps, commit="the same sources", driver="another", command="another")
    assert times() == 4
    visit(*steps, again=True)
    assert times() == 6


def test_a_step_is_repeated_once_what_it_depends_on_has_changed(visit, step, tmp_path, digests, capsys):
    """And its outcome is kept until then, with those of other steps."""
    code, times = counting(tmp_path)
    steps = step("calls-gemm", code), step("calls-gemv", code)
    visit(*steps, commit="first")
    digests["calls-gemv"] = "changed"
    record = visit(steps[0], names=["calls-gemm", "calls-gemv"], commit="second")
    assert times() == 2 and "calls-gemv  out of date" in capsys.readouterr().out
    assert record["last_passed"]["commits"] == ["first"]
    record = visit(*steps, commit="second")
    assert times() == 3 and {name: s["commit"] for name, s in record["steps"].items()} == {
        "calls-gemm": "first",
        "calls-gemv": "second",
    }
    assert (record["last_passed"]["commit"], record["last_passed"]["commits"]) == ("second", ["first", "second"])


def test_it_depends_on_the_operations_that_its_tests_used(visit, step, digests):
    uses = dataclasses.replace(step("tests-gemm-1of2", "print('a')"), read=lambda log: read(log, used={"matmul", "gemm"}))
    record = visit(uses)["steps"]["tests-gemm-1of2"]
    assert (record["used"], record["digest"]) == (["gemm", "matmul"], "nowgemmmatmul")


def test_a_step_without_a_digest_is_out_of_date(visit, step, tmp_path):
    """As records of earlier gates are."""
    code, times = counting(tmp_path)
    visit(step("once", code))
    path = tmp_path / "h200/gate.json"
    record = json.loads(path.read_text())
    for name in ("digest", "used", "left_out"):
        del record["steps"]["once"][name]
    path.write_text(json.dumps(record))
    visit(step("once", code))
    assert times() == 2


def test_a_run_of_everything_counts_for_one_that_leaves_something_out(visit, step, tmp_path):
    code, times = counting(tmp_path)
    visit(step("tests-gemm-1of1", code), left_out=[gate.QUICK])
    visit(step("tests-gemm-1of1", code))
    visit(step("tests-gemm-1of1", code), left_out=[gate.QUICK])
    assert times() == 2
    visit(step("calls", code), left_out=[gate.QUICK])
    visit(step("calls", code))
    assert times() == 3, "it leaves out no calls"


@pytest.mark.parametrize("name", VERSIONS)
def test_outcomes_of_other_versions_do_not_count(visit, step, tmp_path, name):
    code, times = counting(tmp_path)
    visit(step("once", code))
    outcome = visit(step("other", "print('a')"), names=["once", "other"], **{name: "another"})
    assert list(outcome["steps"]) == ["other"]
    visit(step("once", code), **{name: "another"})
    assert times() == 2


def test_outcomes_of_steps_that_only_other_options_have_are_kept(visit, step, tmp_path):
    """But not those of gates that had no digests."""
    visit(step("tests-matmul-1of6", "print('a')"), step("tests-1", "print('a')"))
    path = tmp_path / "h200/gate.json"
    record = json.loads(path.read_text())
    del record["steps"]["tests-1"]["digest"]
    path.write_text(json.dumps(record))
    kept = visit(step("tests-matmul-1of4", "print('a')"), left_out=[gate.QUICK])
    assert list(kept["steps"]) == ["tests-matmul-1of4", "tests-matmul-1of6"] and kept["planned"] == ["tests-matmul-1of4"]


def test_two_gpus_that_passed_stay_passed(visit, step):
    visit(step("two_gpus", "print('a')"))
    assert visit(step("two_gpus", instead="there is one GPU here"))["steps"]["two_gpus"]["status"] == "passed"


def test_each_triton_has_its_own_record(visit, step, tmp_path):
    code, times = counting(tmp_path)
    newest = visit(step("once", code), triton="3.10.0")
    oldest = visit(step("once", code), triton="3.9.0")
    assert times() == 2 and newest["steps"]["once"]["status"] == oldest["steps"]["once"]["status"] == "passed"
    visit(step("once", code), triton="3.10.0")
    assert times() == 2
    file = json.loads((tmp_path / "h200/gate.json").read_text())
    assert file["last_passed"] == oldest["last_passed"], "of the oldest Triton, where a reader of one record finds it"
    assert [file["triton"], *(other["triton"] for other in file["newer"])] == ["3.9.0", "3.10.0"]


def test_no_step_begins_that_would_take_too_long(visit, step, tmp_path, capsys):
    """Its time is that of its last run, of other sources or with another Triton; of a step that never ended, the plan's."""
    code, times = counting(tmp_path)
    steps = [step(name, code) for name in ("calls", "tests-1", "tests-2")]
    visit(*steps[:2], names=["calls", "tests-1", "tests-2"])
    others = {"triton": "3.9.0"}
    path = tmp_path / "h200/gate.json"
    known = json.loads(path.read_text())
    known["steps"]["calls"]["seconds"] = known["took"]["calls"] = 130.0
    path.write_text(json.dumps(known))
    record = visit(*steps, minutes=2, **others)
    assert list(record["steps"]) == ["tests-1"] and times() == 3
    printed = capsys.readouterr().out
    assert "gate calls: not begun: it takes about 130 s, and 120 s are left" in printed
    assert f"gate tests-2: not begun: it takes about {plan.expected('tests-2')} s" in printed
    assert list(visit(*steps, minutes=10, **others)["steps"]) == ["calls", "tests-1", "tests-2"] and times() == 5


def test_the_longest_that_fits_goes_first(visit, step, tmp_path, capsys):
    path = tmp_path / "h200/gate.json"
    names = ["build", "short", "middle", "long", "longest"]
    steps = [step(name, "print('a')", gpus=int(name != "build")) for name in names]
    record = visit(*steps)
    path.write_text(
        json.dumps(record | {"steps": {}, "took": {"build": 1, "short": 2, "middle": 70, "long": 100, "longest": 130}})
    )
    capsys.readouterr()
    visit(*steps, minutes=2)
    begun = [line.split()[1] for line in capsys.readouterr().out.splitlines() if "processes" in line]
    assert begun == ["build:", "long:", "middle:", "short:"]


def test_a_step_that_does_not_end_in_the_time_there_is_is_cut_off(visit, step, monkeypatch):
    """It has not failed; it is expected to take longer next time."""
    monkeypatch.setattr(gate.plan, "expected", lambda name: 0.1)
    record = visit(step("tests-gemm-1of2", "import time; print('a b', flush=True); time.sleep(600)"), minutes=1 / 60)
    outcome = record["steps"]["tests-gemm-1of2"]
    assert outcome["status"] == "failed" and not outcome["failures"] and outcome["note"].startswith(shown.CUT_OFF)
    assert 0.5 < record["took"]["tests-gemm-1of2"] < 60


def test_of_a_step_that_is_cut_off_only_what_its_calls_did_counts_as_failed(visit, step, monkeypatch):
    """One process ends in the midst of its calls, one has found a wrong call before, one crashes."""
    monkeypatch.setattr(gate.plan, "expected", lambda name: 0.1)
    waits = "import time; time.sleep(600)"
    codes = (
        f"print('RUN a', flush=True); {waits}",
        f"print('RUN b\\nWRONG b: 1\\nRUN c', flush=True); {waits}",
        "import os; os.abort()",
    )
    cut = dataclasses.replace(step("memcheck-gemm", *codes), read=findings.read_sanitized)
    outcome = visit(cut, minutes=1 / 30)["steps"]["memcheck-gemm"]
    assert outcome["status"] == "failed" and outcome["note"].startswith(shown.CUT_OFF)
    assert set(outcome["failures"]) == {"b", cut.jobs[2].log.stem} and "SIGABRT" in outcome["failures"][cut.jobs[2].log.stem]


def test_what_failed_before_goes_last(visit, step, capsys, digests):
    """Once what it depends on has changed it is as good as any other."""
    visit(step("tests-gemm-1of1", "print('a!')"))
    begun = []
    for _ in range(2):
        capsys.readouterr()
        longer = step("large-gemm", "import time; time.sleep(0.5); print('a')")
        visit(step("tests-gemm-1of1", "print('a!')"), longer, step("calls", "print('a')"), again=True)
        begun.append([line.split()[1] for line in capsys.readouterr().out.splitlines() if "processes" in line])
        digests["tests-gemm-1of1"] = "changed"
    assert begun == [["large-gemm:", "calls:", "tests-gemm-1of1:"], ["tests-gemm-1of1:", "large-gemm:", "calls:"]]


@pytest.fixture
def planned(monkeypatch):
    """The gate has these steps, on any machine."""

    def planned(*names):
        monkeypatch.setattr(plan, "names", lambda package=None, quick=False: list(names))
        return list(names)

    return planned


def test_what_holds_for_the_sources_at_hand(visit, step, tmp_path, planned, digests):
    names, green, red = planned("calls-gemm", "calls-gemv", "tests-gemm-1of2"), "print('a b')", "print('a!')"
    assert shown.markdown(results=tmp_path) == "The gate has not been run yet."
    assert shown.outcome("3.6.0", tmp_path) == "not run"

    def lines():
        return [line.removeprefix("- some gpu, Triton 3.6.0: ") for line in shown.markdown(results=tmp_path).splitlines()]

    visit(step("calls-gemm", green), names=names)
    changed = "to be run, or run again since what they depend on has changed"
    assert lines() == [
        "no commit has passed the gate yet.",
        f"1 of 3 steps hold for the sources at hand, which ran at `abc`; {changed}: 1 in calls, 1 in tests.",
    ]
    assert shown.outcome("3.6.0", tmp_path) == "some: 1 of 3 steps hold for these sources (2 passed, 0 failed)"
    record = visit(step("calls-gemv", green), step("tests-gemm-1of2", green), names=names, commit="def")
    date = record["last_passed"]["date"][:10]
    passed = [
        f"commit `def` passed the whole gate on {date} (4 in calls, 2 in tests).",
        "its steps ran at `abc`, `def`; what a step depends on was the same at `def`.",
    ]
    assert lines() == [*passed, "all 3 steps hold for the sources at hand."]
    assert shown.outcome("3.6.0", tmp_path) == f"some: 6 passed, {date}, `def`"
    assert shown.outcome("3.9.0", tmp_path) == "not run"

    digests["calls-gemv"] = digests["tests-gemm-1of2"] = "changed"
    visit(step("calls-gemv", red), names=names, commit="ghi")
    assert lines() == [
        *passed,
        f"1 of 3 steps hold for the sources at hand, which ran at `abc`; failed: calls-gemv; {changed}: 1 in tests.",
    ]
    now = "now 1 of 3 steps hold for these sources (2 passed, 1 failed)"
    assert shown.outcome("3.6.0", tmp_path) == f"some: 6 passed, {date}, `def`; {now}"
    assert shown.in_short(results=tmp_path) == f"- some gpu, Triton 3.6.0: 6 passed, {date}, `def`; {now}."
    planned(*names, "memcheck-gemm")
    assert "1 of 4 steps hold" in lines()[-1] and "1 in tests, 1 in memcheck" in lines()[-1], "a step that is new is not run"


def test_what_a_run_left_out_is_said(visit, step, tmp_path, planned):
    """And its steps do not count for a run of everything."""
    planned("calls")
    code, times = counting(tmp_path)
    record = visit(step("calls", code), left_out=["cuda_reference"])
    assert "passed the gate without cuda_reference on" in shown.markdown(results=tmp_path)
    assert "all 1 steps hold for the sources at hand, without cuda_reference." in shown.markdown(results=tmp_path)
    assert shown.outcome("3.6.0", tmp_path).startswith("some: 1 passed without cuda_reference, 20")
    (tmp_path / "h200/gate.json").write_text(json.dumps(record | {"left_out": ""}))
    assert "0 of 1 steps hold" in shown.markdown(results=tmp_path)
    visit(step("calls", code))
    assert times() == 2 and "passed the whole gate" in shown.markdown(results=tmp_path)


@pytest.mark.parametrize("note", [shown.CUT_OFF, "SystemExit: ended by SIGTERM"])
def test_a_run_that_was_cut_off(visit, step, tmp_path, planned, note):
    """Nothing failed in it."""
    names = planned("calls", "tests", "two_gpus")
    record = visit(*[step(name, "print('a b')") for name in names], names=names)
    cut = record["steps"]["tests"] | {"status": "failed", "counts": {"passed": 1234}, "note": note}
    path = tmp_path / "h200/gate.json"
    path.write_text(json.dumps(record | {"steps": record["steps"] | {"tests": cut}}))
    assert shown.markdown(results=tmp_path).endswith("; cut off: tests after 1,234 passed and none failed.")
    assert shown.outcome("3.6.0", tmp_path).endswith("now 2 of 3 steps hold for these sources (4 passed, 0 failed, 1 cut off)")
    cut["failures"] = {"a test": "why"}
    path.write_text(json.dumps(record | {"steps": record["steps"] | {"tests": cut}}))
    assert shown.markdown(results=tmp_path).endswith("; failed: tests.")


ENDLESS = """
import sys
from pathlib import Path
from perf.measure import environment
from perf import processes
from perf.gate import findings, gate, gate_steps, shown
from perf.__main__ import main
gate.torch.cuda.is_available = lambda: True
gate.backend.device_type = lambda: "cuda"
environment.environment = lambda device: {about}
shown.RESULTS = Path("{results}")
sleeps = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
jobs = (processes.Job((sys.executable, "-c", sleeps), Path("{log}")),)
gate_steps.steps = lambda *_: [gate_steps.Step("calls", jobs, findings.read_calls)]
main(["gate"])
"""


@pytest.mark.parametrize(
    "number, note", [(signal.SIGTERM, "ended by SIGTERM"), (signal.SIGKILL, "it was started and did not end")]
)
def test_a_gate_that_is_ended_leaves_a_failure(tmp_path, number, note):
    log = tmp_path / "x.log"
    program = ENDLESS.format(log=log, results=tmp_path, about=ABOUT | {"device": "NVIDIA H200"})
    process = children.start("-c", program)
    while not (log.exists() and log.read_text().endswith("\n")):
        assert process.is_alive()
        time.sleep(0.05)
    os.kill(process.pid, number)
    process.join()
    outcome = json.loads((tmp_path / "h200/gate.json").read_text())["steps"]["calls"]
    assert outcome["status"] == "failed" and note in outcome["note"]
    child = int(log.read_text())
    if number == signal.SIGTERM:
        assert not Path(f"/proc/{child}").exists()
    else:
        os.kill(child, signal.SIGKILL)


@pytest.fixture
def on_a_gpu(monkeypatch, tmp_path, step):
    """perf gate as a command, on a machine with a GPU and three steps."""
    monkeypatch.setattr(gate.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gate.backend, "device_type", lambda: "cuda")
    facts = dict.fromkeys(("command", "driver", "python", "torch", "triton", "numpy", "cuda", "nvcc"), "x")
    monkeypatch.setattr(environment, "environment", lambda device: facts | {"device": "NVIDIA H200"})
    monkeypatch.setattr(shown, "RESULTS", tmp_path / "results")
    steps = [step("calls-gemm", "print('a')"), step("tests-gemm-1of2", "print('a')"), step("tests-gemv-1of1", "print('a!')")]
    monkeypatch.setattr(gate_steps, "steps", lambda logs, package, quick: steps[:1] if package else steps)
    return lambda: json.loads((tmp_path / "results/h200/gate.json").read_text())


@pytest.mark.parametrize(
    ("gpu", "folder"), [("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA Foo-1 Ti", "foo_1_ti")]
)
def test_the_folder_is_that_of_the_gpu_s_records(gpu, folder):
    assert gate._folder(gpu) == folder


def test_the_command(on_a_gpu, monkeypatch):
    monkeypatch.setattr(environment, "commit", lambda: None)
    assert main(["gate", "--step", "calls", "--commit", "abc"]) == 0
    assert list(on_a_gpu()["steps"]) == ["calls-gemm"] and on_a_gpu()["commit"] == "abc"
    assert main(["gate", "--step", "tests-gemm-1of2", "--step", "calls-gemm"]) == 0
    monkeypatch.setattr(environment, "commit", lambda: "def+changes")
    assert main(["gate", "--step", "gemv", "--commit", "abc"]) == 1
    assert list(on_a_gpu()["steps"]) == ["calls-gemm", "tests-gemm-1of2", "tests-gemv-1of1"] and on_a_gpu()["commit"] == "abc"
    assert main(["gate"]) == 1
    assert on_a_gpu()["commit"] == "def+changes"


def test_the_command_for_a_second_triton(on_a_gpu, monkeypatch):
    monkeypatch.setattr(environment, "commit", lambda: "abc")
    assert main(["gate", "--package", "tritonkernels", "--quick"]) == 0
    left_out = "cuda_reference and the cases that make test leaves out"
    assert on_a_gpu()["left_out"] == on_a_gpu()["last_passed"]["left_out"] == left_out
    assert main(["gate", "--step", "tests-gemm-1of2", "--minutes", "0.001"]) == 1 and on_a_gpu()["planned"] == ["calls-gemm"], (
        "nothing began"
    )


def test_an_unknown_step(on_a_gpu, capsys):
    with pytest.raises(SystemExit) as raised:
        main(["gate", "--step", "testes"])
    allowed = "calls, gemm, calls-gemm, tests, tests-gemm-1of2, gemv, tests-gemv-1of1"
    assert raised.value.code == 2 and f"got testes; allowed: {allowed}" in capsys.readouterr().err


def test_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(gate.torch.cuda, "is_available", lambda: False)
    assert main(["gate"]) == 2
    assert capsys.readouterr().err == "gate needs a GPU, and torch sees none\n"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    for folder in (*environment.SOURCES, "perf/results"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "file").write_text(folder)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], check=True)
    return tmp_path


def test_results_are_no_changes(repository):
    clean, digest = environment.commit(), environment.digest()
    assert len(clean) == 12 and environment.revision() == clean
    (repository / "perf/results/file").write_text("another")
    (repository / "perf/results/gate.json").write_text("new")
    assert (environment.commit(), environment.digest(), environment.revision()) == (clean, digest, clean)
    (repository / "tests/new").write_text("new")
    assert environment.commit() == f"{clean}+changes"
    assert environment.digest() != digest and environment.revision() == f"{clean}+{environment.digest()}"


def test_the_commit_of_another_repository_is_not_taken_for_ours(repository, monkeypatch):
    """An installed package may lie in one: a project's that has its .venv inside."""
    assert environment.commit()
    monkeypatch.setattr(environment, "IS_CHECKOUT", False)
    assert environment.commit() is None and environment.revision() == f"no-commit+{environment.digest()}"


def test_without_a_repository(repository, monkeypatch):
    monkeypatch.setattr(environment, "_output", lambda *command: None)
    assert environment.commit() is None and environment.revision() == f"no-commit+{environment.digest()}"
