"""The steps of the gate on stand-ins for what they run: tests that fail in every way, a sanitizer that finds errors."""

import fnmatch
import re
import stat
import sys
import types
from collections import Counter

import pytest
import torch

from cuda_reference import child
from perf import ROOT, processes
from perf.gate import findings, gate_pytest, gate_steps, plan
from perf.gate.findings import Findings
from tritonkernels import OPS, problem

TESTS = """
import os, sys, types
import pytest

def test_passes(): pass
def test_fails(): assert 1 == 2, "one is not two"
@pytest.mark.skip(reason="not here")
def test_is_skipped(): pass
@pytest.fixture
def broken(): raise OSError("no such thing")
def test_errs(broken): pass
@pytest.fixture
def leaves(): yield; raise OSError("cannot leave")
def test_cannot_leave(leaves): pass
def test_dies(): os._exit(9)

def test_loses_the_gpu():
    def lost(): raise RuntimeError("an illegal memory access")
    cuda = types.SimpleNamespace(is_initialized=lambda: True, synchronize=lost)
    sys.modules["torch"] = types.SimpleNamespace(cuda=cuda, stand_in=True)
    assert not "the result"
def test_runs_where_the_gpu_is_there(): assert not hasattr(sys.modules.get("torch"), "stand_in")
"""


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(gate_steps, "WORKERS", 1)
    monkeypatch.setattr(gate_steps, "SANITIZED", 4)


def found(step):
    (job,) = step.jobs
    (status,) = processes.run([job], 200)
    return status, step.read(job.log)


def test_every_way_to_fail_is_reported(tmp_path, few):
    tests = tmp_path / "tests"
    tests.mkdir()
    marked = "import pytest\npytestmark = pytest.mark.gpu\n"
    (tests / "test_all.py").write_text(marked + TESTS)
    (tests / "test_unmarked.py").write_text("def test_is_for_the_cpu(): assert False")
    (tests / "test_broken.py").write_text("import nothing_of_that_name")
    status, findings = found(gate_steps._pytest("tests-1", tmp_path, str(tests)))
    assert status == 1
    assert findings.counts == Counter(passed=2, skipped=1, failed=3, error=3)
    why = {name.rpartition("/")[2].removeprefix("test_all.py::"): text for name, text in findings.failures.items()}
    parts = {
        "test_broken.py": "nothing_of_that_name",
        "test_fails": "one is not two",
        "test_errs": "no such thing",
        "test_cannot_leave": "cannot leave",
        "test_dies": "crashed",
        "test_loses_the_gpu": "the result",
    }
    assert set(why) == set(parts) and {name: why[name] for name, part in parts.items() if part not in why[name]} == {}


OF_A_PACKAGE = """
import pytest, types
pytestmark = pytest.mark.gpu
cuda, triton = types.SimpleNamespace(package="cuda_reference"), types.SimpleNamespace(package="tritonkernels")

@pytest.mark.parametrize("library", [cuda, triton])
def test_library(library): pass
@pytest.mark.parametrize("name", ["cuda_reference.gemm", "tritonkernels.gemm"])
def test_name(name): pass
def test_of_neither(): pass
"""


def test_what_only_cuda_takes_part_in_is_left_out_for_a_second_triton(tmp_path, few):
    (tmp_path / "test_both.py").write_text(OF_A_PACKAGE)
    (tmp_path / "test_splits_cuda.py").write_text("import pytest\n@pytest.mark.gpu\ndef test_splits(): pass")
    step = gate_steps._pytest("tests-1", tmp_path, str(tmp_path), "--package=tritonkernels")
    assert found(step) == (0, Findings(Counter(passed=3)))
    names = [name.partition("::")[2] for name in re.findall('"name": "([^"]*)"', (tmp_path / "tests-1.jsonl").read_text())]
    assert sorted(names) == ["test_library[library1]", "test_name[tritonkernels.gemm]", "test_of_neither"]
    assert found(gate_steps._pytest("tests-1", tmp_path, str(tmp_path)))[1].counts["passed"] == 6


def test_shards_run_every_test_once(tmp_path, few):
    (tmp_path / "test_many.py").write_text(
        "import pytest\n@pytest.mark.gpu\n@pytest.mark.parametrize('i', range(40))\ndef test_one(i): pass"
    )
    names = []
    for i in (1, 2):
        step = gate_steps._pytest(f"tests-{i}", tmp_path, str(tmp_path / "test_many.py"), f"--shard={i}/2")
        status, outcome = found(step)
        assert status == 0 and 5 < outcome.counts["passed"] < 35
        names += [line for line in findings._lines(tmp_path / f"tests-{i}.jsonl")]
    assert len(names) == len(set(names)) == 40


class Enough(Exception):
    pass


def test_a_killed_run_reports_its_results_so_far(tmp_path, few):
    (tmp_path / "test_slow.py").write_text(
        "import time, pytest\npytestmark = pytest.mark.gpu\n"
        "def test_a(): assert False\ndef test_b(): pass\ndef test_hangs(): time.sleep(300)"
    )
    step = gate_steps._pytest("tests-1", tmp_path, str(tmp_path / "test_slow.py"))
    (job,) = step.jobs

    def watch():
        if step.read(job.log).counts == Counter(failed=1, passed=1):
            raise Enough

    with pytest.raises(Enough):
        processes.run([job], 200, watch)


MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ atomic of size 4 bytes
=========     at _extremes_kernel+0x1b0 in planes.py:120
=========     by thread (0,0,0) in block (0,0,0)
=========     Access at 0x7f is out of bounds
=========
========= Invalid __global__ atomic of size 4 bytes
=========     at _extremes_kernel+0x1b0 in planes.py:120
=========     by thread (1,0,0) in block (0,0,0)
=========
========= Invalid __shared__ read of size 16 bytes
=========     at void gemm::tiled<(int)128>(gemm::Matrix)+0x80
=========     by thread (1,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 3 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void gemv::split_n<float>(float)+0x80
=========     and Read access at void gemv::split_n<float>(float)+0xd0 [508 hazards]
=========
========= Warning: Race reported between Read access at void gemv::naive(float)+0x10
=========     and Write access at void gemv::naive(float)+0x20 [1 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""


def read(tmp_path, sanitizer, child="RUN a\nRUN b\nDONE 2 calls, 0 wrong\n"):
    (tmp_path / "x.log").write_text(child)
    (tmp_path / "x.sanitizer").write_text(sanitizer)
    return findings.read_sanitized(tmp_path / "x.log")


def test_errors_are_listed_by_kernel(tmp_path):
    findings = read(tmp_path, MEMCHECK)
    assert findings.counts == Counter(passed=2, error=3)
    (atomic, times), (shared, _) = findings.failures.items()
    assert atomic == "Invalid __global__ atomic of size 4 bytes at _extremes_kernel+0x1b0 in planes.py:120"
    assert times == "2 times, by thread (0,0,0) in block (0,0,0); Access at 0x7f is out of bounds"
    assert "gemm::tiled" in shared


def test_races_are_errors_and_warnings_are_reported(tmp_path):
    findings = read(tmp_path, RACECHECK)
    assert findings.counts == Counter(passed=2, error=1, warning=1)
    (race,), (warning,) = findings.failures, findings.warnings
    assert "gemv::split_n<float>(float)+0x80 and Read access" in race and "gemv::naive" in warning


@pytest.mark.parametrize("log", ["", MEMCHECK.replace("ERROR SUMMARY", "")], ids=["none", "cut off"])
def test_a_missing_summary_is_a_failure(tmp_path, log):
    assert any("no summary" in name for name in read(tmp_path, log).failures)


def test_errors_that_were_not_printed_count(tmp_path):
    assert read(tmp_path, "========= ERROR SUMMARY: 2 errors\n").failures
    clean = read(tmp_path, "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n")
    assert clean.failures == {} and clean.counts == Counter(passed=2)


def test_wrong_results_and_a_lost_context_are_reported(tmp_path):
    (tmp_path / "x.log").write_text("RUN a\nWRONG a: error 3: above\nRUN b\nRUN c\nWRONG c: LaunchError\nLOST the context\n")
    outcome = findings.read_calls(tmp_path / "x.log")
    last = "it did not end; its last line: LOST the context"
    assert outcome.failures == {"a": "error 3: above", "c": "LaunchError", "x": last}


def test_missing_calls_are_failures(tmp_path):
    """Whatever the exit status: compute-sanitizer's may hide the program's."""
    findings = read(tmp_path, "========= ERROR SUMMARY: 0 errors\n", "RUN a\nRUN b\n")
    assert findings.failures == {"x": "it did not end; its last line: RUN b"} and findings.counts == Counter(passed=1)


SANITIZER = """#!{python}
import subprocess, sys
arguments = sys.argv[1:]
log = arguments[arguments.index("--log-file") + 1]
command = arguments[arguments.index(sys.executable):]
assert command[1:3] == ["-m", "tests.gate.child"] and "--tool" in arguments, arguments
print("RUN", *command[3:])
print("DONE 1 calls, 0 wrong")
open(log, "w").write("========= COMPUTE-SANITIZER\\n========= ERROR SUMMARY: 0 errors\\n")
"""


def test_the_calls_run_under_the_sanitizer(tmp_path, few, monkeypatch):
    program = tmp_path / "compute-sanitizer"
    program.write_text(SANITIZER.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(gate_steps, "compute_sanitizer", lambda: str(program))
    by_name = {step.name: step for step in gate_steps.steps(tmp_path)}
    for name, packages in (("memcheck-gemv", 2), ("racecheck", 1), ("synccheck", 1)):
        step = by_name[name]
        assert len(step.jobs) == 4 and len({job.log for job in step.jobs}) == len(step.jobs)
        ports = {part for job in step.jobs for part in job.command if part.startswith("--port=")}
        assert len(ports) == len(step.jobs)
        assert processes.run(step.jobs, 60) == [0] * len(step.jobs)
        shares = [job.log.read_text().splitlines()[0].split()[1:3] for job in step.jobs]
        each = 4 // packages
        of_each = [f"--share={i}/{each}" for i in range(1, each + 1)]
        assert sorted(shares) == [[p, share] for p in gate_steps.PACKAGES[:packages] for share in of_each]
        assert all(step.read(job.log).failures == {} for job in step.jobs)
        assert ("--operations gemv" in step.jobs[0].log.read_text()) == (name == "memcheck-gemv")
    assert all(job.environment.items() >= gate_steps.APART.items() for job in by_name["memcheck-gemv"].jobs)


def test_a_second_triton_has_what_it_can_change(tmp_path):
    steps = {step.name: step.jobs for step in gate_steps.steps(tmp_path, "tritonkernels", quick=True)}
    checks = {}
    for name, (job, *_) in steps.items():
        checks.setdefault(plan.parts(name)[0], job.command)
    assert list(checks) == ["calls", "memcheck", "large", "tests", "consan", "gsan", "around", "two_gpus"]
    for name in ("calls", "memcheck"):
        assert "tritonkernels" in checks[name] and "cuda_reference" not in checks[name]
    for name in ("large", "tests", "around", "two_gpus"):
        assert "--package=tritonkernels" in checks[name]
    assert [name for name, command in checks.items() if "--all" in command] == ["large"]


def test_the_steps_of_everything(tmp_path):
    """Every operation is of one family; every folder of tests is run by one kind of step, in every share."""
    steps = {step.name: step.jobs for step in gate_steps.steps(tmp_path)}
    assert sorted(op for ops in plan.FAMILIES.values() for op in ops) == sorted(OPS)
    for check in ("build", "calls", "memcheck", "large"):
        assert [name for name in steps if plan.parts(name)[0] == check] == [f"{check}-{family}" for family in plan.FAMILIES]
    for family, count in plan.SHARES.items():
        commands = [steps[f"tests-{family}-{i}of{count}"][0].command for i in range(1, count + 1)]
        assert all({f"--family={family}", f"--shard={i}/{count}", "--all"} <= {*c} for i, c in enumerate(commands, 1))
        assert all("tests" in command for command in commands) == (family == plan.REST)
    around, rest = steps["around"][0].command, steps[f"tests-{plan.REST}-1of{plan.SHARES[plan.REST]}"][0].command
    for folder in plan.AROUND:
        assert (ROOT / "tests" / folder).is_dir() and f"tests/{folder}" in around and f"--ignore=tests/{folder}" in rest
    assert not any(part.startswith("--family") for part in around)


def test_the_designs_under_tritons_sanitizers():
    """Designs that place barriers and copies themselves, and those whose programs meet at counters."""

    def those(mode):
        return {name for name, text in gate_steps._triton_designs() if re.search(gate_steps.INSTRUMENTED[mode], text)}

    gluon = {"gemm/async_copy", "matmul/warp_specialized", "matmul/persistent", "matmul/cuda_cores", "matmul/dmma"}
    assert those("consan") >= gluon and not those("consan") & {"gemm/tiled", "matmul/split_k", "gemv/naive"}
    assert those("gsan") >= {"matmul/split_k", "gemv/split_n", "conv2d_weight/implicit_gemm"}
    assert "gemv/naive" not in those("gsan")


@pytest.mark.parametrize(
    "version, capability, why",
    [("3.8.0", (9, 0), "Triton 3.9"), ("3.10.0", (8, 9), "compute capability 9.0"), ("3.9.0+git", (9, 0), None)],
)
def test_where_tritons_sanitizers_run(monkeypatch, tmp_path, version, capability, why):
    monkeypatch.setattr(gate_steps.importlib.metadata, "version", lambda package: version)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    step = {step.name: step for step in gate_steps.steps(tmp_path)}["consan"]
    assert step.instead is None if why is None else why in step.instead
    assert all(job.environment["TRITON_INSTRUMENTATION_MODE"] == "consan" for job in step.jobs)


CONSAN = """\
RUN a
RUN b
/x/partitions.py:185: consume: block: [1,0,0], thread: [32,0,0] Assertion `Buffer being accessed has outstanding writes` failed.
/x/partitions.py:185: consume: block: [1,0,0], thread: [33,0,0] Assertion `Buffer being accessed has outstanding writes` failed.
WRONG b: AcceleratorError: CUDA error: device-side assert triggered
LOST the CUDA context; 1 calls are left
RUN c
DONE 3 calls, 0 wrong
"""


def test_what_tritons_sanitizer_says_is_the_call_s_fault(tmp_path):
    (tmp_path / "consan.log").write_text(CONSAN)
    outcome = findings.read_instrumented(tmp_path / "consan.log")
    assert outcome.counts == Counter(passed=2, failed=1)
    assert outcome.failures == {
        "b": "Buffer being accessed has outstanding writes at /x/partitions.py:185; "
        "AcceleratorError: CUDA error: device-side assert triggered"
    }


@pytest.mark.parametrize("count, runs", [(1, False), (2, True)])
def test_two_gpus_needs_two(tmp_path, monkeypatch, count, runs):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert (gate_steps.steps(tmp_path)[-1].instead is None) == runs


def item(path, name="test_it", program=lambda: None, **parameters):
    more = {"callspec": types.SimpleNamespace(params=parameters)} if parameters else {}
    return types.SimpleNamespace(path=ROOT / "tests" / path, originalname=name, function=program, **more)


def test_the_family_of_a_test():
    """Its own file's; in a file of all, its parameter's; "rest" where another process compiles, or where nothing says it."""
    of = gate_pytest.family
    assert of(item("designs/matmul/test_fp8.py")) == of(item("designs/test_designs.py", op="matmul")) == "matmul"
    assert of(item("designs/matmul/test_fp8.py", op="gemm")) == "matmul" and of(item("operations/test_gemv.py")) == "gemv"
    assert of(item("operations/test_conv2d_gradients.py")) == of(item("designs/test_designs.py", op="conv2d_bias")) == "conv2d"
    assert of(item("large/test_large.py", "test_gemv_down_columns")) == "gemv"
    assert of(item("properties/test_valid_calls.py", op="gemm")) == of(item("designs/test_gemm_splits.py")) == "gemm"
    for rest in (
        item("torch_ops/test_gradients.py", op="gemm"),
        item("operations/test_native.py", name="gemm"),
        item("designs/test_waits.py", program=lambda: printed("import tritonkernels"), op="gemm"),  # noqa: F821
        item("large/test_large.py", "test_gemm_like_gemv"),
        item("../examples/test_gemm.py"),
    ):
        assert of(rest) == "rest"


USES = """
import pytest, subprocess, sys, types
class Problem: op = ""
class Gemv(Problem): op = "gemv"
class Matmul(Problem): op = "matmul"
sys.modules["tritonkernels.problem"] = types.SimpleNamespace(Problem=Problem)
Gemv()
@pytest.mark.gpu
def test_uses():
    Matmul()
    {more}
"""


def test_every_problem_is_of_an_operation():
    classes = [value for value in vars(problem).values() if isinstance(value, type) and issubclass(value, problem.Problem)]
    assert {cls.op for cls in classes} == {"", *OPS} and not any("__new__" in vars(cls) for cls in classes)


BUILD = f"""
    sys.modules["cuda_reference.child"] = types.SimpleNamespace(PROGRAM={child.PROGRAM!r})
    subprocess.run([sys.executable, "-c", {child.PROGRAM!r}], input=b"[]", check=True)
"""


@pytest.mark.parametrize(
    "more, used", [("", {"matmul"}), ("subprocess.run([sys.executable, '-c', ''])", {*OPS}), (BUILD, {"matmul"})]
)
def test_the_operations_that_tests_use_are_recorded(tmp_path, monkeypatch, more, used):
    """Not those of what a file prepares when it is imported; another Python may use any, unless it runs a compiler."""
    (tmp_path / "test_uses.py").write_text(USES.format(more=more))
    program = (
        "import sys, pytest; from perf.gate import gate_pytest; gate_pytest.family = lambda item: 'gemm'\n"
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    outcomes = tmp_path / "tests-gemm.jsonl"
    options = [
        "-q",
        "-p",
        "perf.gate.gate_pytest",
        f"--outcomes={outcomes}",
        "--family=gemm",
        "-p",
        "no:cacheprovider",
        tmp_path,
    ]
    job = processes.Job((sys.executable, "-c", program, *map(str, options)), tmp_path / "tests-gemm.log")
    assert processes.run([job], 200) == [0], job.log.read_text()
    assert findings.read_tests(job.log) == Findings(Counter(passed=1), used=frozenset(used))


def test_files_of_other_families_are_not_collected():
    """And no other: pytest takes the globs for whole paths."""

    def collected(family):
        globs = [option.partition("=")[2] for option in gate_steps._ignoring_others(family)]
        files = [path.relative_to(ROOT) for folder in plan.ACROSS for path in (ROOT / "tests" / folder).rglob("test_*.py")]
        ignored = {file for file in files for glob in globs for part in (file, file.parent) if fnmatch.fnmatch(str(part), glob)}
        return {family_of(file) for file in {*files} - ignored}

    def family_of(file):
        return plan.family_of_file(file.relative_to("tests").parts)

    assert collected("gemm") == {None, "gemm"} and collected("conv2d") == {None, "conv2d"} and collected(plan.REST) == {None}
