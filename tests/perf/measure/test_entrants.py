"""Peers in a comparison: their rows, precisions, first calls that hang or fail, and who reads the records."""

import functools
import os
import time
from dataclasses import replace

import pytest
import torch
from stand_ins import record, right

from perf.__main__ import main
from perf.fit import timed
from perf.measure import against, measured, records, workers
from perf.measure.cases import conv2d, gemv
from perf.measure.check import Finding
from perf.measure.comparison import Entry
from perf.measure.peers import PEERS, entrants
from perf.measure.peers.peer import Peer
from perf.measure.suites import SUITES
from perf.render.report import gather
from tritonkernels.errors import UnsupportedError
from tritonkernels.gemv import prepare
from tritonkernels.numerics import Verdict

CASE, CPU = gemv(9, 8), torch.device("cpu")


class Inline:
    """A Worker without a process; `hangs` and `dies` are names of peers."""

    hangs, dies, started = (), (), 0

    def __init__(self, work):
        self.work = work
        Inline.started += 1

    def give(self, task):
        self.task = task

    def receive(self):
        if self.task[0] in self.dies:
            return "died", "its process ended with status -11"
        return "done", self.work(self.task, None)

    def end(self):
        self.task = None


def wait(waiting, seconds):
    return [worker for worker in waiting if worker.task[0] not in worker.hangs]


@pytest.fixture
def inline(monkeypatch):
    """Entrants whose first calls are made in this process."""
    for name, value in {"hangs": (), "dies": (), "started": 0}.items():
        monkeypatch.setattr(Inline, name, value)
    monkeypatch.setattr(entrants, "Entrants", functools.partial(entrants.Entrants, start=Inline, wait=wait))
    return Inline


@pytest.fixture
def enter_peer(monkeypatch, inline):
    """enter_peer(name, call) makes a peer of gemv, which does not write `out`."""

    def enter(name, call):
        monkeypatch.setitem(PEERS, name, Peer(name, "torch", lambda problem, *args, **kwargs: (call, False), capability=None))

    return enter


def product(a, x, y=None, *, alpha=1.0, beta=None, out, of=torch.float64):
    result = alpha * (a.to(of).double() @ x.to(of).double())
    return (result if y is None else result + beta * y.double()).to(a.dtype)


def compare(capsys, *arguments):
    status = main(["compare", "--op", "gemv", *arguments])
    return status, capsys.readouterr().out


def test_rows_of_peers_in_table_and_records(gemv_does, enter_peer, capsys, tmp_path):
    gemv_does(right)
    enter_peer("good", product)
    status, out = compare(capsys, "--peers", "good", "torch-eager", "--json", str(tmp_path / "r.json"))
    last = out.splitlines()[-1]
    assert status == 0
    assert last.startswith("8 rows, 8 ok, 0 failed, 0 refused, ") and last.endswith("; 8 rows of peers, 8 ok, 0 apart")
    rows = [r for r in records.read_json(tmp_path / "r.json") if r.implementation == "peer"]
    assert [r.design for r in rows] == ["good", "torch-eager"] * 4
    assert {(r.backend, r.ok, r.ratio_to_torch, r.config["version"]) for r in rows} == {
        ("torch-cpu", True, None, torch.__version__)
    }


def test_a_wrong_peer_fails_its_rows_only(gemv_does, enter_peer, capsys):
    gemv_does(right)
    enter_peer("bad", lambda *args, out, **kwargs: product(*args, out=out, **kwargs) + 100.0)
    status, out = compare(capsys, "--peers", "bad", "--quiet")
    assert status == 0
    assert "FAILED: gemv 131x16, peer bad: the error exceeds its bound" in out
    assert out.splitlines()[-1].startswith("8 rows, 8 ok, 0 failed, ") and out.endswith("; 4 rows of peers, 0 ok, 0 apart\n")


@pytest.mark.parametrize("of, precision", [(torch.float16, "tf32"), (torch.bfloat16, "below ieee")])
def test_a_peer_of_a_smaller_precision_is_apart(gemv_does, enter_peer, capsys, tmp_path, of, precision):
    """Its error decides of which. The bound of its row is that of its own precision, where that has a name."""
    gemv_does(right)
    enter_peer("coarse", functools.partial(product, of=of))
    status, out = compare(capsys, "--peers", "coarse", "--json", str(tmp_path / "r.json"))
    read = records.read_json(tmp_path / "r.json")
    (row,) = [r for r in read if r.case == "131x16" and r.is_peer]
    assert (status, row.ok, row.precision, row.problem["precision"], row.is_apart) == (0, True, precision, "ieee", True)
    assert (row.error <= row.bound) == (precision == "tf32")
    above, below = out.split("Peers whose error is that of a smaller precision")
    assert [name in above for name in ("gemv 131x16", "coarse")] == [True, "gemv 77x1030" not in below], "sums hide it there"
    assert [line.split()[2:4] for line in below.splitlines() if "gemv 131x16" in line] == [["peer", "coarse"]]
    assert "; 4 rows of peers, 4 ok, " in out
    assert main(["compare", "--records", str(tmp_path / "r.json")]) == 0
    assert capsys.readouterr().out.count("Peers whose error") == 1


def test_a_precision_once_lost_is_not_regained():
    args, kwargs = CASE.arguments(0, CPU)
    problem, verdict = prepare(*args, **kwargs).problem, Verdict(1e-4, 1e-3, True)
    finding = Finding(Verdict(1e-4, 1e-6, False), "too large", True, (replace(problem, precision="tf32"), verdict))
    for before, after in (("ieee", "tf32"), ("below ieee", "below ieee")):
        row = record(implementation="peer", precision=before)
        graded = Entry(row, problem, None, None, True, lambda config: None).graded(finding)
        assert (row.precision, graded.ok) == (after, True)
    row = record(implementation="triton", precision="ieee")
    assert Entry(row, problem, None, None, True, lambda config: None).graded(finding) is finding, "designs keep their word"


def test_hangs_faults_and_errors_are_skipped_with_the_reason(gemv_does, enter_peer, inline, monkeypatch, capsys):
    """What hung, or ended the process, is not asked again; the others go on in a new process."""

    def breaks(*args, out, **kwargs):
        raise ValueError("no kernel image")

    def refuses(*args, out, **kwargs):
        raise UnsupportedError("it does not like it")

    gemv_does(right)
    for name, call in {"good": product, "slow": product, "crash": product, "breaks": breaks, "refuses": refuses}.items():
        enter_peer(name, call)
    monkeypatch.setattr(inline, "hangs", ("slow",))
    monkeypatch.setattr(inline, "dies", ("crash",))
    status, out = compare(capsys, "--peers", "slow", "crash", "breaks", "refuses", "good", "quack")
    lines = [line for line in out.splitlines() if line.startswith(("Skipped", "Refused"))]
    assert status == 0 and lines == [
        "Skipped: peer quack: the Python package quack is not installed",
        "Skipped: peer slow, gemv 131x16: its first call did not end within 120 s; it is not asked again",
        "Skipped: peer crash, gemv 131x16: its process ended with status -11; it is not asked again",
        "Skipped: peer breaks, gemv 131x16 and 3 more: ValueError: no kernel image",
        "Refused: 4, by peers; --refusals says why",
    ]
    assert inline.started == 3 and "4 rows of peers, 4 ok" in out
    _, out = compare(capsys, "--peers", "refuses", "--refusals")
    assert "Refused: peer refuses, gemv 131x16 and 3 more: it does not like it" in out


def hang(task, tell):
    time.sleep(600)


def crash(task, tell):
    os._exit(3)


def call_of(name, work, limit):
    """What becomes of a first call in a real process that does `work`: the contenders, the lines, the seconds."""
    (args, kwargs), started = CASE.arguments(0, CPU), time.monotonic()
    problem = prepare(*args, **kwargs).problem
    with entrants.Entrants([name], CPU, 0, limit, start=lambda _: workers.Worker(work)) as peers:
        found = list(peers.of(CASE, problem, args, kwargs))
        assert found or list(peers.of(CASE, problem, args, kwargs)) == [], "it is not asked again"
    return found, list(peers.lines(False)), time.monotonic() - started


def test_in_a_process_that_hangs():
    found, (line,), seconds = call_of("torch-eager", hang, 1.0)
    assert found == [] and "its first call did not end within 1 s" in line and seconds < 30


def test_in_a_process_that_ends():
    found, (line,), _ = call_of("torch-eager", crash, 100.0)
    assert found == [] and "its process ended with status 3" in line


def test_in_a_process_that_calls_it():
    (contender,), lines, _ = call_of("torch-eager", entrants.first_call, 100.0)
    assert (contender.implementation, contender.design, contender.writes_out, lines) == ("peer", "torch-eager", True, [])


@pytest.mark.gpu
def test_torchs_two_peers_on_a_gpu(monkeypatch, capsys, tmp_path):
    """The tuner's first call is made in another process. Whether torch's convolution is apart is up to cuDNN."""
    cases = conv2d((8, 64, 28, 28), (64, 64, 3, 3), padding=1), gemv(4096, 512)
    monkeypatch.setitem(SUITES, "smoke", cases)
    ours = "--implementation", "triton", "--design", "direct", "naive"
    peers = "--peers", "torch-eager", "torch-compile", "--json", str(tmp_path / "r.json")
    assert main(["compare", "--op", "gemv", "conv2d", *ours, *peers]) == 0
    rows = {(r.op, r.design): r for r in records.read_json(tmp_path / "r.json") if r.is_peer}
    assert len(rows) == 4 and all(r.ok and r.median_ms for r in rows.values()), capsys.readouterr().out
    assert all((r.ratio_to_torch is None) == r.is_apart for r in rows.values())
    assert not rows["gemv", "torch-eager"].is_apart


# Who reads the records.
@pytest.mark.usefixtures("triton_only")
def test_the_list_has_the_peers(capsys):
    status, out = compare(capsys, "--list")
    assert status == 0
    assert "\npeers, with --peers\n    torch-eager\n    torch-compile\n    cublaslt" in out


def test_charts_fit_and_against_do_without_peers():
    args, kwargs = CASE.arguments(0, CPU)
    of = {"case": CASE.name, "problem": prepare(*args, **kwargs).problem.describe(), "exposed": 0.0}
    ours, torchs, fast, slow = (
        record(implementation=implementation, design=design, median_ms=ms, p20_ms=ms, p80_ms=ms, **of)
        for implementation, design, ms in (
            ("triton", "naive", 1.0),
            ("torch", "addmv", 2.0),
            ("peer", "x", 0.5),
            ("peer", "x", 9.0),
        )
    )
    (case,) = measured._cases([ours, torchs, fast])
    assert (case.vendor, case.designs) == (torchs, [ours])
    (shape,) = timed.of_suite([vars(r) for r in (ours, torchs, fast)])
    assert shape.torch == 2e-3 and list(shape.runs) == ["tritonkernels"]
    assert [pair.now.design for pair in against.pairs([ours, torchs, fast], [ours, torchs, slow])] == ["naive", "addmv"]


def test_failed_peers_are_no_failures_of_the_report(tmp_path):
    rows = [record(ok=False, message="wrong", implementation=name) for name in ("triton", "peer")]
    records.write_json(tmp_path / "smoke.json", rows)
    assert list(gather._failures(tmp_path)) == [("gemv 3x4, triton warp_per_row", "wrong")]
