"""Times of kernels that are no more are not fitted to; their designs keep their figures until they are timed again."""

import pytest

from perf.fit import counted, remade, timed
from perf.measure import measured
from tritonkernels.choice import efficiency
from tritonkernels.target import Target

H200 = Target.named("h200")
DESIGN = "cuda_reference gemm.split_k"


@pytest.fixture(scope="module")
def runs():
    shapes = list(timed.of_sweep(row) for row in measured.swept(measured.RESULTS / "h200", "gemm"))
    return counted.counted(shapes[:200], H200)


def of_design(runs):
    return [run for run in runs if run.key.startswith(DESIGN)]


def test_earlier_times_are_left_out(runs, monkeypatch):
    monkeypatch.setattr(remade, "REMADE", {DESIGN: "2099-01-01"})
    left = remade.of_today(runs)
    assert of_design(runs) and not of_design(left) and len(left) == len(runs) - len(of_design(runs))
    judged = remade.of_today_only(runs)
    assert not any(remade.design_of(run.key) == DESIGN for run in judged)
    shapes = {(id(run.shape), run.package) for run in runs if remade.design_of(run.key) == DESIGN}
    assert shapes and judged == [run for run in left if (id(run.shape), run.package) not in shapes] != []
    monkeypatch.setattr(remade, "REMADE", {DESIGN: "2001-01-01"})
    assert remade.of_today(runs) == remade.of_today_only(runs) == runs


def test_earlier_times_of_a_class_of_problems_are_left_out(runs, monkeypatch):
    monkeypatch.setattr(remade, "REMADE", {f"{DESIGN}: b_layout col": "2099-01-01"})
    left = {id(run) for run in remade.of_today(runs)}
    gone = [run for run in runs if id(run) not in left]
    assert gone == [run for run in of_design(runs) if run.problem.b_layout == "col"] != of_design(runs)
    assert remade.kept(remade.of_today(runs), efficiency.sustained("h200")) == {}


def test_earlier_times_of_configs_are_left_out(runs, monkeypatch):
    monkeypatch.setattr(remade, "REMADE", {f"{DESIGN}: BM 64": "2099-01-01"})
    left = {id(run) for run in remade.of_today(runs)}
    assert (
        [r for r in runs if id(r) not in left]
        == [r for r in of_design(runs) if r.config["BM"] == 64]
        not in ([], of_design(runs))
    )


def test_figures_are_kept_until_there_are_newer_times(runs, monkeypatch):
    figures = efficiency.sustained("h200")
    monkeypatch.setattr(remade, "REMADE", {DESIGN: "2099-01-01"})
    assert remade.kept(remade.of_today(runs), figures) == {k: v for k, v in figures.items() if k.startswith(DESIGN)} != {}
    monkeypatch.setattr(remade, "REMADE", {DESIGN: "2001-01-01"})
    assert remade.kept(remade.of_today(runs), figures) == {}


def test_earlier_times_of_results_that_tma_cannot_write_are_left_out(runs, monkeypatch):
    monkeypatch.setattr(remade, "REMADE", {f"{DESIGN}: {remade.ODD_ROWS}": "2099-01-01"})
    left = {id(run) for run in remade.of_today(runs)}
    assert (
        [r for r in runs if id(r) not in left] == [r for r in of_design(runs) if r.problem.n % 4] not in ([], of_design(runs))
    )


def test_products_of_phases_as_they_were_are_left_out():
    """Gradients of inputs with a stride, in channels_last, by designs of matmul."""
    shapes = [timed.of_sweep(row) for row in measured.swept(measured.RESULTS / "h200", "conv2d_input")]
    runs = counted.counted([shape for shape in shapes if max(shape.problem.stride) > 1][:40], H200)
    left = {id(run) for run in remade.of_today(runs)}
    gone = [run for run in runs if id(run) not in left]
    of_phases = [run for run in runs if "matmul." in run.key and run.shape.problem.channels_last]
    assert {id(run) for run in of_phases} <= {id(run) for run in gone} and len(of_phases) > 20
    assert any(" conv2d." in run.key and id(run) in left for run in runs)
    assert any("matmul." in run.key and id(run) in left and not run.shape.problem.channels_last for run in runs)
