"""Measured figures: a GPU that nobody knows gets them, the model counts by them, and a file that is not ours is refused."""

import dataclasses
import json
import logging
import math
import os

import pytest
import torch

import tritonkernels
from tests.harness import LIBRARIES
from tritonkernels import backend, calibration
from tritonkernels.calibration import Calibration
from tritonkernels.choice import efficiency, model
from tritonkernels.errors import TuningError
from tritonkernels.problem import dtype_name
from tritonkernels.target import Target

H200 = Target.named("h200")
FIGURES = {"dram_bandwidth": 0.2e12, "l2_bandwidth": 0.9e12, "latency": 9e-7, "launch": 3e-6, "ieee": 4e12, "fp16": 20e12}
X1 = Calibration("NVIDIA X1", 20, "2026-11-22", "3.7.1", "2.13.0", FIGURES)
NEW = {"name": "NVIDIA X1", "major": 8, "minor": 6, "gcnArchName": "NVIDIA X1", "multi_processor_count": 20}
KNOWN = {"name": "NVIDIA H200", "major": 9, "minor": 0, "gcnArchName": "NVIDIA H200", "multi_processor_count": 132}


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(tmp_path / "mine.json"))
    monkeypatch.setattr(calibration.FILE, "_content", None)
    return tmp_path / "calibration.json"


@pytest.fixture
def said(caplog):
    return lambda: [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture
def on_h200(monkeypatch):
    """on_h200(figures): they are what was measured on an H200."""

    def are(figures):
        monkeypatch.setattr(model, "_measured_on_the_reference", lambda: figures)
        model.rates.cache_clear()

    yield are
    model.rates.cache_clear()


def store(*found):
    calibration.FILE.change(lambda known: known | {(one.gpu, one.sms): one for one in found})


def forget(monkeypatch):
    """As in a new process."""
    monkeypatch.setattr(calibration.FILE, "_content", None)


def test_an_unknown_gpu_gets_its_measured_figures(file, live, monkeypatch):
    before = live(NEW)
    assert (before.dram_bandwidth, before.peaks, before.measured) == (0, {}, None)
    store(X1, dataclasses.replace(X1, sms=10, figures={"fp16": 10e12}))
    forget(monkeypatch)
    found = live(NEW)
    assert (found.dram_bandwidth, found.l2_bandwidth) == (0.2e12, 0.9e12)
    assert found.peaks == {"ieee": 4e12, "fp16": 20e12} and found.measured == X1
    assert live(NEW | {"multi_processor_count": 10}).peaks == {"fp16": 10e12}, "a part of the GPU"
    assert live(NEW | {"name": "NVIDIA X1 Ti"}).measured is None
    assert live(NEW | {"multi_processor_count": 19}).measured is None
    assert found == live(NEW) and hash(found) == hash(live(NEW))


def test_a_known_gpu_keeps_its_data_sheet_and_the_model_counts_what_was_measured(file, live, on_h200):
    store(dataclasses.replace(X1, gpu="NVIDIA H200", sms=132, figures={"fp16": 600e12, "dram_bandwidth": 4.3e12}))
    found = live(KNOWN)
    assert (found.peaks, found.dram_bandwidth) == (H200.peaks, H200.dram_bandwidth), "limits and shares of the peak stay"
    on_h200({"fp16": 600e12, "dram_bandwidth": 4.3e12})
    for name, rate in model.rates(H200).flops.items():
        assert model.rates(found).flops[name] == pytest.approx(rate), name
    assert model.rates(found)[3:7] == pytest.approx(model.rates(H200)[3:7]), "an H200 like ours is one by its data sheet"


def test_the_model_counts_by_the_ratio_to_the_h200_s_figures(file, live, on_h200):
    store(X1)
    measured = {
        "fp16": 800e12,
        "ieee": 60e12,
        "dram_bandwidth": 4e12,
        "l2_bandwidth": 9e12,
        "latency": 600e-9,
        "launch": 1.5e-6,
    }
    on_h200(measured)
    rates = model.rates(live(NEW))
    assert rates.flops["fp16"] * 20 == pytest.approx(20 / 800 * H200.peaks["fp16"])
    assert rates.flops["ieee"] * 20 == pytest.approx(4 / 60 * H200.peaks["ieee"])
    assert rates.flops["tf32"] == pytest.approx(H200.peaks["tf32"] / 132), "what was left out is in proportion"
    assert rates.dram == pytest.approx(0.2 / 4 * H200.dram_bandwidth)
    assert rates.l2 * 20 == pytest.approx(0.9 / 9 * H200.l2_bandwidth)
    assert rates.latency == pytest.approx(9 / 6 * H200.latency) and rates.launch == pytest.approx(2 * H200.launch)


def test_figures_that_the_h200_has_not_count_as_they_are(file, live, on_h200):
    store(X1)
    on_h200({})
    rates = model.rates(live(NEW))
    assert (rates.flops["fp16"] * 20, rates.dram, rates.launch) == pytest.approx((20e12, 0.2e12, 3e-6))


def test_what_is_shipped_of_the_h200_is_of_an_h200():
    found = calibration.by_gpu(json.loads((efficiency.TABLES / "h200" / "calibration.json").read_text())["entries"])
    assert [Target.named(c.gpu).name for c in found.values()] in ([], ["h200"])


def test_every_call_finds_a_choice_by_the_extremes_that_are_allowed(file, live):
    """A file can be strange and yet have the schema: no overflow, no division by zero."""
    for end in (0, 1):
        figures = {name: calibration.plausible_range(name, 20)[end] for name in (*calibration.RANGES, *calibration.PER_CYCLE)}
        store(dataclasses.replace(X1, figures=figures))
        for library in LIBRARIES:
            for dtype in (torch.float16, torch.float32):
                operands = (torch.empty(5000, 5000, dtype=dtype, device="meta") for _ in range(2))
                problem = library.operation("matmul").prepare(*operands).problem
                best = library.ranking(problem, live(NEW))[0]
                assert math.isfinite(best.estimate.seconds) and best.estimate.seconds > 0, dtype_name(dtype)


def test_doctor_and_explain_say_so(file, live, monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    live(NEW)
    measure = "tritonkernels calibrate (in a checkout: python -m perf calibrate)"
    assert tritonkernels.doctor()["figures"] == f"in proportion to the H200's; {measure} measures them"
    live(KNOWN)
    assert tritonkernels.doctor()["figures"] == "data sheet"
    a = torch.empty(64, 64, device="meta")
    assert "figures" not in tritonkernels.explain("gemm", a, a, target=live(NEW))
    store(X1)
    target = live(NEW)
    assert tritonkernels.doctor()["figures"] == "measured on 2026-11-22"
    assert tritonkernels.explain("gemm", a, a, target=target)["figures"] == "measured on 2026-11-22"


def written(**changes):
    def put(path):
        path.write_text(json.dumps({"schema": 1, "entries": [vars(X1) | changes]}))
        path.chmod(0o600)

    return put


def text(content):
    return lambda path: path.write_text(content) and path.chmod(0o600)


def then(change):
    def put(path):
        written()(path)
        change(path)

    return put


UNUSABLE = {
    "half of it": then(lambda path: path.write_bytes(path.read_bytes()[:99])),
    "another's": text('{"hello": 1}'),
    "another schema": text('{"schema": 2, "entries": []}'),
    "a field too many": written(more=1),
    "SMs that are none": written(sms="20"),
    "figures that are none": written(figures=[1.0]),
    "a figure of its own": written(figures={"__class__": 1.0}),
    "no number": written(figures={"fp16": "fast"}),
    "true": written(figures={"launch": True}),
    "nothing": written(figures={"fp16": 0.0}),
    "less than nothing": written(figures={"dram_bandwidth": -1e12}),
    "infinite": written(figures={"fp16": math.inf}),
    "NaN": written(figures={"latency": math.nan}),
    "more than can be": written(figures={"fp16": 1e300}),
    "more than so many SMs can": written(sms=1, figures={"fp16": 1e15}),
    "no SMs": written(sms=0),
    "all may write": then(lambda path: path.chmod(0o602)),
    "a link": then(lambda path: (path.rename(path.with_name("elsewhere")), path.symlink_to("elsewhere"))),
    "a pipe": lambda path: os.mkfifo(path, 0o600),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_an_unusable_file_is_refused_with_one_warning_and_calls_go_on(what, file, live, said):
    UNUSABLE[what](file)
    before = file.stat().st_mtime_ns
    for _ in range(3):
        assert live(NEW).measured is None
    (line,) = said()
    assert line.startswith(f"tritonkernels: the table of measured figures is not used: {file}: ") and "\n" not in line
    assert "Remove it, or set TRITONKERNELS_TUNING to another file or to off" in line
    with pytest.raises(TuningError, match=r"the table of measured figures cannot be written: .*Remove it"):
        store(X1)
    assert file.stat().st_mtime_ns == before, "it may be somebody's"


def test_a_usable_file_is_used(file, live, said):
    """So that the test above is one of what it changes."""
    written()(file)
    assert live(NEW).measured == X1 and not said()


def test_off_is_neither_read_nor_written(file, live, monkeypatch):
    written()(file)
    monkeypatch.setenv("TRITONKERNELS_TUNING", "off")
    assert live(NEW).measured is None
    with pytest.raises(TuningError, match="TRITONKERNELS_TUNING is off"):
        store(X1)


def test_the_ordinary_place_is_beside_the_tuned_table(file, tmp_path, live, monkeypatch):
    monkeypatch.delenv("TRITONKERNELS_TUNING")
    monkeypatch.setenv("TRITONKERNELS_CACHE", str(tmp_path / "cache"))
    assert live(NEW).measured is None and not (tmp_path / "cache").exists(), "to look makes no folder"
    store(X1)
    assert calibration.FILE.path().parent == LIBRARIES[0].tuned.path().parent == tmp_path / "cache"
    assert calibration.FILE.path().stat().st_mode & 0o777 == 0o600


def test_only_the_first_target_touches_the_file(file, live, monkeypatch):
    store(X1)
    forget(monkeypatch)
    opened, real = [], os.open

    def noted(path, *rest, **more):
        opened.append(path)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", noted)
    live(NEW)
    assert opened == [file]
    file.unlink()
    assert live(NEW).measured == X1 and opened == [file]
