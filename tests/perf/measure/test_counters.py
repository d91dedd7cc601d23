"""perf counters: which calls it counts, and what it makes of ncu's output."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from perf.__main__ import main
from perf.measure import contenders, counters
from perf.measure.suites import SUITES
from tritonkernels.target import Target

HEAD = '"ID","Kernel Name","dram__bytes_read.sum","l1tex__m_xbar2l1tex_read_bytes.sum","lts__t_sectors_op_read.sum"'
UNITS = '"","","byte","byte","sector"'
MARK = '"0","at::cuda::<unnamed>::spin_kernel(long)","7","7","7"'


def test_the_kernels_of_a_call_are_added_up_without_the_mark():
    kernels = ['"1","persistent","1000","2000","3"', '"2","add, of splits","10","20","1,000"', MARK, '"4","nvjet","5","6","7"']
    found = counters.counted("\n".join(["==PROF== Connected", HEAD, UNITS, MARK, *kernels, "==PROF== Disconnected"]))
    assert found == [
        {"l2_read_bytes": 32 * 1003, "l2_to_sms_bytes": 2020, "dram_read_bytes": 1010},
        {"l2_read_bytes": 32 * 7, "l2_to_sms_bytes": 6, "dram_read_bytes": 5},
    ]
    assert counters.counted("==ERROR== ERR_NVGPUCTRPERM") == []


@pytest.fixture
def h200(monkeypatch):
    """As if there were a GPU and ncu, which said `text`; returns what it was asked."""
    asked = []
    monkeypatch.setattr(Target, "live", lambda device: Target.named("h200"))
    monkeypatch.setattr(contenders, "device", lambda: torch.device("cuda", 0))
    monkeypatch.setattr(counters, "environment", lambda device, commit: {"commit": commit})
    monkeypatch.setattr(counters.shutil, "which", lambda name: f"/usr/bin/{name}")

    def ncu(command, check):
        asked.append(json.loads(Path(command[-1]).read_text()))
        line = '"1","some","100","200","3"'
        Path(command[command.index("--log-file") + 1]).write_text("\n".join([HEAD, UNITS] + [MARK, line] * len(asked[0][1])))

    monkeypatch.setattr(counters.subprocess, "run", ncu)
    return asked


WANTED = ["matmul", "--suite", "square", "--implementation", "cuda", "--design", "persistent", "--case"]
LARGE = "4096x4096x4096 float16"


def test_of_each_design_the_first_configs_and_torch(h200, tmp_path, capsys):
    file = tmp_path / "counters.json"
    options = ["--config", "BM=256", "BN=128", "--configs", "9", "--json", str(file), "--commit", "abc"]
    assert main(["counters", *WANTED, LARGE, *options]) == 0
    ((suite, wanted),) = h200
    assert suite == "square" and {name for _, _, name, _, _ in wanted} == {LARGE}
    found = [(who, config and (config["BM"], config.get("CLUSTER", 1))) for who, _, _, _, config in wanted]
    assert sorted(found[:-1]) == [("cuda", (256, 1)), ("cuda", (256, 2)), ("cuda", (256, 4))] and found[-1] == ("torch", None)
    written = json.loads(file.read_text())
    assert written["environment"] == {"commit": "abc"}
    assert [row["l2_read_bytes"] for row in written["records"]] == [96] * 4
    assert "CLUSTER=2" in capsys.readouterr().out


@pytest.mark.parametrize("case", ("smoke gemm", "smoke conv2d", "smoke matmul"))
def test_each_call_runs_twice_and_the_second_one_is_counted(monkeypatch, case):
    suite, op = case.split()
    smallest = min((c for c in SUITES[suite] if c.op == op and not c.gpu_only), key=lambda c: c.operands[0].shape)
    events, profiler = [], SimpleNamespace(start=lambda: events.append("start"), stop=lambda: events.append("stop"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "profiler", profiler)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: events.append("mark"))
    design = "depthwise" if op == "conv2d" else "naive"
    counters.run(suite, [["cuda", op, smallest.name, design, None], ["torch", op, smallest.name, None, None]])
    assert events == ["start", "mark", "stop"] * 2


def test_a_call_that_ncu_did_not_count_is_an_error(h200, monkeypatch, capsys):
    monkeypatch.setattr(counters, "counted", lambda text: [])
    assert main(["counters", *WANTED, LARGE]) == 2 and "counted 0 of 2 calls: it gave no reason" in capsys.readouterr().err


def test_without_a_gpu_or_ncu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(contenders, "device", lambda: torch.device("cpu"))
    assert main(["counters", "matmul"]) == 2 and "torch sees none" in capsys.readouterr().err
    monkeypatch.setattr(contenders, "device", lambda: torch.device("cuda", 0))
    monkeypatch.setattr(counters.shutil, "which", lambda name: None)
    assert main(["counters", "matmul"]) == 2 and "no ncu" in capsys.readouterr().err


def test_options_that_leave_nothing(h200, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["counters", "matmul", "--suite", "square", "--case", "no such case"])
    assert "no design takes a case" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["counters", "matmul", "--config", "BM"])


@pytest.mark.gpu
def test_what_a_real_gpu_counts(tmp_path):
    """DRAM sends the operands once at least, and SMs get no less."""
    if not counters.shutil.which("ncu"):
        pytest.skip("there is no ncu")
    file = tmp_path / "counters.json"
    command = [sys.executable, "-m", "perf", "counters", *WANTED, "1024x1024x1024 float16", "--json", file]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 2 and "ERR_NVGPUCTRPERM" in done.stderr:
        pytest.skip("this user may not read the counters")
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["records"]
    assert [row["implementation"] for row in rows] == ["cuda", "torch"]
    for row in rows:
        assert 0.9 * 2**22 <= row["dram_read_bytes"] <= 2**23 and row["l2_to_sms_bytes"] >= 2**22, row
