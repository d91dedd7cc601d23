"""tune() of a product with a Split: designs that read its planes are tried, and those that read B itself."""

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.choice.stand_ins import H200, SimulatedGpu, built
from tests.harness import available_on
from tritonkernels.choice import builds, tuner

DESIGNS = "planes", "gemm.rasterized", "gemv.block_per_row"


@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)
@pytest.mark.parametrize("precision, fastest", (("fp16x3", "planes"), ("fp32", "gemm.rasterized")))
def test_the_fastest_serves_splits_alone(file, fresh, package, precision, fastest, monkeypatch):
    library, gpu = package.launch.LIBRARY, SimulatedGpu()
    available_on(library, "cpu")
    candidates, run = library.candidates, library.run

    def one_of_each(problem, target):
        """The fastest last: the first is the choice without a table."""
        choices, refusals = candidates(problem, target)
        first = {name: next(choice for choice in choices if choice[0].name == name) for name in DESIGNS}
        return sorted(first.values(), key=lambda choice: choice[0].name == fastest), refusals

    def timed(call, design, config):
        gpu.work(1e-4 if design == fastest else 3e-4)
        return run(call, design, config)

    monkeypatch.setattr(builds, "run", built)
    monkeypatch.setattr(library, "target", lambda device: H200)
    monkeypatch.setattr(library, "candidates", one_of_each)
    monkeypatch.setattr(library, "run", timed)
    monkeypatch.setattr(library, "build_seconds", lambda launch: 0.0)
    a, b = torch.randn(1, 300), torch.randn(300, 40)
    split = package.split(b, precision=precision)
    report = tuner.tune(library, "matmul", (a, split), {}, clock=gpu)
    assert (report["winner"]["design"], report["timed"]) == (fastest, 3) and "faults" not in report, report
    of_split, of_b = (package.explain("matmul", a, given, precision=precision) for given in (split, b))
    assert (of_split["design"], of_split["chosen_by"], of_b["chosen_by"]) == (fastest, "tuned table", "model")
