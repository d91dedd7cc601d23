"""Which design conv2d uses: the one that is fast in the records, that fits, and that the package has."""

import dataclasses
import importlib
import math
import statistics
from pathlib import Path

import pytest
import torch

from perf.measure.records import read_rows
from perf.measure.suites import SUITES
from tests.harness import LIBRARIES, prepare
from tritonkernels.conv2d.parts import regime
from tritonkernels.conv2d.parts.regime import SHAPES, expected, prefer
from tritonkernels.target import Target

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "perf/results/h200"
H200, SIMT = Target.named("h200"), Target.named("simt")
OLD = Target.named("sm_75")  # where the preferred design often refuses
LADDER = ("naive", "depthwise", "direct", "register_blocked")


def problem(input, weight, dtype=torch.float32, layout=torch.contiguous_format, **options):
    tensors = (torch.empty(shape, dtype=dtype, device="meta").to(memory_format=layout) for shape in (input, weight))
    return prepare("conv2d", *tensors, **options).problem


NHWC = {"layout": torch.channels_last}
CHOICES = {
    "register_blocked": [
        problem((1, 6, 768, 512), (6, 6, 6, 6)),
        problem((1, 3, 1080, 1920), (3, 3, 3, 3), padding=1, **NHWC),
        problem((1, 3, 1080, 1920), (3, 3, 6, 6), padding=1),
        problem((8, 16, 128, 128), (16, 16, 3, 3), torch.float16),
    ],
    "grouped": [
        problem((1, 3, 1080, 1920), (3, 3, 3, 3), padding=1),
        problem((32, 128, 56, 56), (128, 4, 3, 3), padding=1, groups=32),
        problem((32, 256, 28, 28), (256, 8, 3, 3), padding=1, groups=32, **NHWC),
        problem((32, 256, 56, 56), (256, 8, 3, 3), padding=1, stride=2, groups=32),
        problem((32, 512, 14, 14), (512, 16, 3, 3), padding=1, groups=32),
        problem((32, 1024, 7, 7), (1024, 32, 3, 3), padding=1, groups=32, **NHWC),
        problem((32, 128, 56, 56), (128, 4, 3, 3), torch.float16, padding=1, groups=32, **NHWC),
    ],
    "depthwise": [
        problem((8, 96, 56, 56), (96, 1, 3, 3), padding=1, groups=96),
        problem((1, 1, 768, 512), (1, 1, 5, 5)),
        problem((1, 3, 1080, 1920), (3, 1, 31, 31), padding=15, groups=3),
    ],
    "depthwise_channels": [problem((8, 96, 56, 56), (96, 1, 3, 3), padding=1, groups=96, **NHWC)],
    "implicit_gemm": [
        problem((1, 1024, 14, 14), (256, 1024, 1, 1)),  # a product of few tiles
        problem((32, 64, 56, 56), (64, 64, 3, 3), torch.float16, padding=1, **NHWC),
        problem((32, 3, 224, 224), (64, 3, 7, 7), torch.float16, padding=3, stride=2, **NHWC),
        problem((1, 512, 7, 7), (512, 512, 3, 3), padding=1),
        problem((32, 256, 56, 56), (512, 256, 1, 1), torch.float16, stride=2, **NHWC),
        problem((8, 64, 56, 56), (64, 64, 3, 3), torch.float64, padding=1),
        problem((32, 256, 56, 56), (64, 256, 1, 1), torch.float16, **NHWC),
    ],
    "matmul": [
        problem((32, 1024, 14, 14), (512, 1024, 1, 1), torch.float16, **NHWC),
        problem((32, 64, 56, 56), (256, 64, 1, 1)),
    ],
}
WITHOUT_PRODUCTS = {
    "direct": [
        problem((32, 64, 14, 14), (64, 64, 3, 3), padding=1),
        problem((1, 6, 768, 512), (6, 6, 6, 6), torch.float64),
        problem((1, 3, 768, 512), (3, 3, 3, 3), dilation=50),
    ],
    "naive": [problem((1, 3, 20, 20), (64, 3, 20, 20)), problem((64, 512, 1, 1), (512, 512, 1, 1))],
}


@pytest.mark.parametrize("target", [H200, SIMT], ids=["h200", "simt"])
@pytest.mark.parametrize("wanted, asked", [(name, p) for name, problems in CHOICES.items() for p in problems])
def test_the_choice(wanted, asked, target):
    assert prefer(asked, target)[0] == wanted


@pytest.mark.parametrize("wanted, asked", [(name, p) for name, problems in WITHOUT_PRODUCTS.items() for p in problems])
def test_the_choice_among_the_seed_s_designs(wanted, asked):
    assert next(name for name in prefer(asked, H200) if name in LADDER) == wanted


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
@pytest.mark.parametrize("asked", [p for some in (CHOICES, WITHOUT_PRODUCTS) for problems in some.values() for p in problems])
def test_the_first_preferred_design_that_does_not_refuse_is_chosen(library, asked):
    """Among matmul's designs, the one that matmul prefers."""
    rule = importlib.import_module(f"{library.package}.conv2d").prefer
    for target in (H200, OLD):
        willing = {d.name.partition(".")[0] for d in library.designs("conv2d") if d.refuses(asked, target) is None}
        chosen = library.choose(asked, target)[0].name
        assert chosen.partition(".")[0] == next(name for name in rule(asked, target) if name in willing)


def test_winograd_is_never_the_choice():
    asked = problem((32, 64, 56, 56), (64, 64, 3, 3), padding=1)
    assert "winograd" not in prefer(asked, H200) and expected("winograd", asked, H200) is None


def test_empty_problems_have_a_design():
    for shapes in (((0, 3, 8, 9), (4, 3, 3, 3)), ((2, 3, 8, 9), (0, 3, 3, 3)), ((2, 0, 8, 9), (4, 0, 3, 3))):
        asked = problem(*shapes)
        assert prefer(asked, H200) == ("direct",) and expected("direct", asked, H200) is None


def test_an_unknown_gpu_is_treated_as_an_h200():
    unknown = dataclasses.replace(H200, name="new", dram_bandwidth=0.0, l2_bandwidth=0.0, peaks={})
    for problems in CHOICES.values():
        for asked in problems:
            assert prefer(asked, unknown) == prefer(asked, H200)


def test_channels_of_other_groups_between_those_of_one_cost_bytes():
    apart, together = (
        expected("register_blocked", problem((32, 32, 112, 112), (32, 1, 3, 3), padding=1, groups=32, **layout), H200)
        for layout in (NHWC, {})
    )
    assert apart.bytes_s == 8 * together.bytes_s and apart.arithmetic_s == together.arithmetic_s


def test_one_block_takes_as_long_as_one_for_each_sm():
    one, all_, twice = (
        expected("register_blocked", problem((n, 6, 21, 69), (6, 6, 6, 6)), H200).arithmetic_s for n in (1, 132, 264)
    )
    assert one == pytest.approx(all_) and twice == pytest.approx(2 * all_)


def test_explain_shows_the_expected_time():
    estimate = regime.expected("implicit_gemm", CHOICES["implicit_gemm"][0], H200)
    assert estimate.seconds == max(estimate.arithmetic_s, estimate.bytes_s, estimate.gather_s, estimate.chain_s) > 0
    x, w = torch.empty(1, 6, 768, 512), torch.empty(6, 6, 6, 6)
    report = LIBRARIES[1].explain("conv2d", x, w, design="register_blocked", target="h200")
    assert report["predicted"]["seconds"] == expected("register_blocked", problem(x.shape, w.shape), H200).seconds


FORMERLY = {"pointwise": "matmul"}  # names of designs in older records


def recorded(suite, names, implementations=("triton", "cuda")):
    """(problem, {design: milliseconds of the faster implementation}) of each case of conv2d in the records."""
    cases = {case.name: case for case in SUITES[suite] if case.op == "conv2d"}
    found = {}
    for row in read_rows(RECORDS / f"{suite}.json"):
        design = FORMERLY.get(row["design"], row["design"])
        of_ours = row["op"] == "conv2d" and row["implementation"] in implementations and design in names
        if of_ours and row["case"] in cases:
            best = found.setdefault(row["case"], {})
            best[design] = min(best.get(design, math.inf), row["median_ms"])
    for name, times in found.items():
        args, options = cases[name].outlines()
        yield prepare("conv2d", *args, **options).problem, times


def test_the_choice_is_as_fast_as_the_docs_say():
    """The chosen design's time over the fastest design's in the same package: mean and maximum, exactly as in the docs."""
    means, most = [], []
    for implementation in ("triton", "cuda"):
        ratios = [
            times[next(name for name in prefer(asked, H200) if name in times)] / min(times.values())
            for suite in ("image", "grouped", "seeds", "resnet50")
            for asked, times in recorded(suite, SHAPES, (implementation,))
        ]
        assert len(ratios) > 100
        means.append(f"{statistics.geometric_mean(ratios):.2f}")
        most.append(f"{max(ratios):.2f}")
    text = " ".join((ROOT / "docs/conv2d.md").read_text().split())
    assert "takes {} times as long as the fastest of them in Triton and {} times".format(*means) in text
    assert "at most {} and {} times".format(*most) in text
    assert "at most {} times (Triton) and {} times (CUDA)".format(*most) in (ROOT / "docs/guarantees.md").read_text()


@pytest.mark.parametrize("suite", ["image", "grouped", "seeds"])
def test_expected_times_are_near_measured_ones(suite):
    """Within a factor of 5; for grouped, whose time decides the choice, of 1.5."""
    seen = set()
    for asked, times in recorded(suite, (*LADDER, "grouped")):
        for name, ms in times.items():
            estimate, factor = expected(name, asked, H200), 1.5 if name == "grouped" else 5
            if ms > 0.02 and estimate:
                assert 1 / factor < estimate.seconds * 1e3 / ms < factor, (name, asked, times)
                seen.add(name)
    assert {"depthwise", "register_blocked"} <= seen and ("grouped" in seen) == (suite != "image")


def test_every_rule_is_for_an_existing_design():
    assert set(LADDER) < set(SHAPES) and all(name in SHAPES for name in prefer(CHOICES["matmul"][0], H200))
