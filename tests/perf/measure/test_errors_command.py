"""The table of errors: its operands are as ill-conditioned as named, its records are distinct, and it matches the docs."""

import pytest
import torch
from stand_ins import record

from perf.measure import errors, records, stress, trial
from tests.harness import prepare
from tritonkernels.target import Target


@pytest.mark.parametrize("condition", stress.CONDITIONS)
def test_inner_products_have_their_condition_number(condition):
    x, y = (t.double() for t in stress.ill_conditioned(torch.Generator().manual_seed(1), 8, 256, condition))
    found = (2 * (x.abs() @ y.abs()) / (x @ y).abs()).log10()
    assert (found.median() - torch.tensor(condition, dtype=torch.float64).log10()).abs() < 1, "to within a factor of 10"


@pytest.mark.parametrize("name", stress.STRESSES)
def test_operands_are_fp32_of_the_asked_shape_and_the_same_for_a_seed(name):
    (a, b), again = (stress.STRESSES[name](torch.Generator().manual_seed(3), 5, 7, 64) for _ in range(2))
    assert a.shape == (5, 64) and b.shape == (64, 7) and a.dtype == b.dtype == torch.float32
    assert a.isfinite().all() and b.isfinite().all() and torch.equal(a, again[0]) and torch.equal(b, again[1])


def test_every_mode_is_measured_and_refusals_are_reported(monkeypatch, triton_only):
    monkeypatch.setattr(errors, "SIZES", {"cpu": (3, 64, 64, 2), "cuda": (3, 64, 64, 2)})
    monkeypatch.setattr(errors, "CONDITIONS", (1e4,))
    monkeypatch.setattr(
        errors, "STRESSES", {name: stress.STRESSES[name] for name in (*list(stress.STRESSES)[:2], "1e30 beside 1e-30")}
    )
    rows = list(errors.measured(("triton", "torch"), 0, torch.device("cpu")))
    assert all(row.ok for row in rows), rows
    assert {row.precision for row in rows if row.implementation == "triton"} == set(errors.MODES)
    refused = {(row.operands, row.precision): row.refused for row in rows if row.refused}
    assert refused == {("1e30 beside 1e-30", "fp16x3"): 1.0}
    exact = [row for row in rows if row.operands == "normal" and row.precision in ("ieee", "fp16x3", "bf16x9")]
    assert all(0 < row.typical <= row.worst < 1e-6 <= row.bound < 1e-4 for row in exact)
    assert all(row.worst > 1e-5 for row in rows if row.precision == "tf32" and not row.operands.startswith("inner"))


@pytest.mark.parametrize("package", ("tritonkernels", "cuda_reference"))
def test_a_mode_is_measured_by_a_design_that_multiplies_in_it(package):
    """For a small product a call that names no design gets one in IEEE arithmetic."""
    library, h200 = trial.library(package), Target.named("h200")
    a = torch.empty(96, 256, device="meta")
    for mode in errors.MODES:
        problem = prepare("matmul", a, a.mT, precision=mode).problem
        name = errors.design_of(library, problem, h200)
        assert mode == "ieee" or not name.startswith("gem"), (mode, name)
        assert library.choose(problem, h200, name)[0].as_rounded(problem) == problem
    assert library.choose(problem, h200)[0].as_rounded(problem) != problem
    assert errors.design_of(library, problem, Target.named("sm_75")) is None


def rows():
    facts = {"environment": record().environment | {"device": "a GPU", "date": "2026-01-02T", "triton": "3.6", "cuda": "13"}}
    common = {"shape": [4, 4, 8], "design": "planes", "backend": "gpu", "ok": True, **facts}
    ours, torchs = ({"implementation": x, "precision": y, **common} for x, y in (("triton", "fp16x3"), ("torch", "ieee")))
    one = errors.Errors("normal", worst=1.25e-7, of_result=2e-6, **ours)
    refused = errors.Errors("inner products of condition 1e+04", refused=0.5, **ours)
    torchs = errors.Errors("normal", worst=3e-7, **torchs)
    return [one, refused, torchs]


def test_the_tables_of_a_file_of_records(tmp_path):
    records.write_json(tmp_path / "errors.json", rows())
    text = errors.chapter(tmp_path / "errors.json")
    assert "a GPU, 2026-01-02" in text and "4 x 4 x 8" in text
    assert "| normal | 1.2e-07 | 3.0e-07 |" in text
    assert "| inner products of condition 1e+04 | 50.0% NaN | - |" in text
