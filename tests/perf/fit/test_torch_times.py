"""Torch's times, from records to predictions: near the records where there are some, none far from them."""

import dataclasses
import json
import math

import pytest
import torch

from perf.fit import timed, torch_times
from perf.fit.timed import Timed
from tritonkernels.choice import model
from tritonkernels.choice import torch_times as times
from tritonkernels.conv2d import CONV2D
from tritonkernels.matmul import MATMUL
from tritonkernels.target import Target

H200 = Target.named("h200")
SHAPES, COMMIT, _ = timed.of_gpu("h200")


def product(m=512, n=512, k=512, dtype=torch.float16, **options):
    a, b = (torch.empty(*size, dtype=dtype, device="meta") for size in ((m, k), (k, n)))
    return MATMUL.prepare(a, b, **options).problem


def shape(problem, over=2.0):
    """One that takes torch `over` times its roofline."""
    return Timed("", problem, over * times.roofline(problem, model.rates(H200)), {})


@pytest.fixture
def of(tmp_path, monkeypatch):
    """of(shapes, problem): what is predicted by a table of these shapes."""

    def predicted(shapes, problem, target=H200):
        path = tmp_path / "h200" / times.FILE
        path.parent.mkdir(exist_ok=True)
        path.write_text(torch_times.text("h200", "abc", torch_times.families(shapes, H200)))
        times.times.cache_clear()
        return times.predicted(problem, target)

    monkeypatch.setattr(model, "TABLES", tmp_path)
    yield predicted
    times.times.cache_clear()


def test_the_shipped_table_is_that_of_the_records():
    shipped = (model.TABLES / "h200" / times.FILE).read_text()
    assert shipped == torch_times.text("h200", COMMIT, torch_times.families(SHAPES, H200)), "run: python -m perf fit"


def test_recorded_shapes_are_predicted_as_recorded():
    """Half of them within 10 %: other records of the same sizes, in other layouts, count too."""
    off = []
    for one in SHAPES:
        if one.torch and times.family_of(one.problem) and not one.in_a_row:
            off.append(abs(math.log(times.predicted(one.problem, H200).seconds / one.torch)))
    assert len(off) > 300 and sorted(off)[len(off) // 2] < math.log(1.1)


def test_the_scatter_is_that_of_predictions_from_the_others():
    for family, own in times.times("h200").items():
        assert 1.1 < own["scatter"] <= 2, family
    same = [shape(product(m)) for m in (256, 512, 1024, 2048)]
    families = torch_times.families(same, H200)
    assert families["product fp16"]["scatter"] == pytest.approx(1, abs=1e-3)
    assert torch_times.families(same[:1], H200)["product fp16"]["scatter"] == torch_times.UNKNOWN


def test_a_near_shape_is_as_far_above_its_roofline(of):
    near = product(600, 512, 700)
    found = of([shape(product()), shape(product(256)), shape(product(8192, 8192, 8192), 1.1)], near)
    assert found.seconds == pytest.approx(2 * times.roofline(near, model.rates(H200)), rel=0.1)


def test_the_recorded_shape_itself_counts_most(of):
    factor = of([shape(product(), 3.0), shape(product(1024)), shape(product(256))], product()).seconds
    assert factor == pytest.approx(3 * times.roofline(product(), model.rates(H200)), rel=0.1)


def test_far_shapes_and_other_families_and_gpus_have_no_time(of):
    shapes = [shape(product())]
    assert of(shapes, product(m=16 * 512)) and of(shapes, product(dtype=torch.bfloat16))
    image, weight = torch.empty(1, 8, 9, 9, device="meta"), torch.empty(8, 8, 3, 3, device="meta")
    for other in (
        product(m=17 * 512),
        product(dtype=torch.float32),
        product(dtype=torch.float32, precision="tf32"),
        product(dtype=torch.int8),
        CONV2D.prepare(image, weight).problem,
    ):
        assert of(shapes, other) is None
    assert of(shapes, product(), Target.named("l4")) is None


def test_what_moves_a_time_is_in_the_sizes():
    """Alignment, layout, stride and groups."""
    assert times.sizes_of(product())[-2:] == (1, 1) and times.sizes_of(product(n=511))[-2:] == (times.UNALIGNED, 1)
    assert times.sizes_of(product(k=511))[-2:] == (1, times.UNALIGNED)
    problem = CONV2D.prepare(torch.empty(1, 8, 9, 9, device="meta"), torch.empty(8, 8, 3, 3, device="meta")).problem
    for field, value in (("channels_last", True), ("stride", (2, 2)), ("groups", 8)):
        assert times.sizes_of(dataclasses.replace(problem, **{field: value})) != times.sizes_of(problem), field


def test_of_several_runs_the_least_counts():
    both = torch_times.families([shape(product(), 3.0), shape(product(), 2.0)], H200)["product fp16"]["times"]
    assert [row[2] for row in both] == [2.0] and json.dumps(both)
