"""The model of time: counts of known kernels against seconds worked out by hand; GPUs with gaps in their figures."""

import dataclasses

import pytest
import torch

from cuda_reference.launch import config_of
from perf.measure import cases, shapes
from tritonkernels.choice import efficiency, model
from tritonkernels.choice.work import Work, copy, product
from tritonkernels.problem import GemmProblem
from tritonkernels.target import KNOWN, Target

H200 = Target.named("h200")
FULL = efficiency.Sustained(*[1.0] * len(efficiency.SHARES))


def kernel(**fields):
    defaults = {"blocks": 132, "threads": 256, "flops": 0.0, "unit": "ieee", "fetched": 0.0, "dram": 0.0, "steps": 0.0}
    return Work(**(defaults | fields))


def estimate(*works, target=H200, sustained=FULL, factors=(1.0, 1.0)):
    contender = model.Contender("tiled", {}, works, sustained, factors)
    (found,) = model.estimates(model.predicted([contender], model.rates(target)))
    return found


@pytest.mark.parametrize("blocks, busiest", [(1, 1), (132, 1), (133, 2), (264, 2), (1000 * 132, 1000), (1000 * 132 + 1, 1001)])
def test_arithmetic_takes_as_long_as_on_the_busiest_sm(blocks, busiest):
    found = estimate(kernel(blocks=blocks, flops=1e9))
    assert found.compute_s == pytest.approx(busiest * 1e9 * 132 / 67e12)
    assert found.seconds == pytest.approx(found.compute_s + 2e-6) and found.bound_by == "compute"


@pytest.mark.parametrize("blocks, threads, share", [(132, 64, 4), (264, 64, 2), (600, 64, 1), (132, 256, 1), (132, 512, 1)])
def test_cuda_cores_want_8_warps(blocks, threads, share):
    """Among what an SM holds at once: 5 blocks of 2 warps do."""
    found = estimate(kernel(blocks=blocks, threads=threads, flops=1e9))
    assert found.compute_s == pytest.approx(share * -(-blocks // 132) * 1e9 * 132 / 67e12)
    of_tensor_cores = estimate(kernel(blocks=blocks, threads=threads, flops=1e9, unit="fp16"))
    assert of_tensor_cores.compute_s == pytest.approx(-(-blocks // 132) * 1e9 * 132 / H200.peak("fp16"))


@pytest.mark.parametrize("blocks, cluster, waves", [(132, 2, 1), (120, 4, 1), (124, 4, 2), (120, 8, 1), (128, 8, 2)])
def test_clusters_leave_some_sms_idle(blocks, cluster, waves):
    """30 of 4 blocks fit an H200, and 15 of 8: as cudaOccupancyMaxActiveClusters says, with an SM a block."""
    found = estimate(kernel(blocks=blocks, cluster=cluster, flops=1e9, steps=10, shared=200 * 1024))
    assert found.compute_s == pytest.approx(waves * 1e9 * 132 / 67e12)
    assert found.latency_s == pytest.approx(waves * 10 * H200.latency)


def test_each_part_by_hand():
    assert estimate(kernel(fetched=1e6)).cache_s == pytest.approx(1e6 * 132 / H200.l2_bandwidth)
    assert estimate(kernel(dram=4.8e9)).memory_s == pytest.approx(1e-3)
    assert estimate(kernel(dram=4.8e9)).bound_by == "memory"
    held = 2048 // 256  # blocks of an SM, by threads
    assert estimate(kernel(steps=10, blocks=132 * held)).latency_s == pytest.approx(10 * H200.latency)
    assert estimate(kernel(steps=10, blocks=132 * held + 1)).latency_s == pytest.approx(20 * H200.latency)
    assert estimate(kernel(epilogue=1e6, blocks=133)).epilogue_s == pytest.approx(2 * 1e6 * 132 / 67e12)
    assert estimate(kernel()).bound_by == "launch"
    equal = estimate(kernel(dram=4.8e9, flops=67e12 / 132 / 1e3))
    assert 1.5e-3 < equal.seconds < 1.7e-3, "parts that take equally long hide each other, but not wholly"


def test_kernels_follow_each_other_and_shares_and_factors_scale():
    one, both = estimate(copy(1, 4096, 4096, 4)), estimate(copy(1, 4096, 4096, 4), copy(1, 4096, 4096, 4))
    assert both.seconds == pytest.approx(2 * one.seconds)
    half = dataclasses.replace(FULL, memory=0.5)
    assert estimate(copy(1, 4096, 4096, 4), sustained=half).memory_s == pytest.approx(2 * one.memory_s)
    assert estimate(copy(1, 4096, 4096, 4), factors=(1.5, 1.0)).seconds == pytest.approx(1.5 * one.seconds - 0.5 * one.launch_s)


def test_what_follows_the_sums_has_factors_of_its_own():
    """A layout's is of the whole kernel, that of an activation of its epilogue; neither of the launch."""
    problem = shapes.prepared(cases.matmul(64, 64, 64, torch.float16, "row", "col", (), activation="gelu")).problem
    own = dataclasses.replace(FULL, factors={"a_layout row": 1.5, "activation gelu": 3.0, "a_layout col": 7.0})
    assert own.of_problem(problem) == (1.5, 3.0)
    plain, work = dataclasses.replace(problem, activation=None), kernel(dram=4.8e9, epilogue=1e9)
    parts = estimate(work)
    for each, expected in ((problem, 3.0), (plain, 1.0)):
        of_problem, after = own.of_problem(each)
        found = estimate(work, sustained=own, factors=(2.0 * of_problem, after)).seconds
        assert found == pytest.approx(2 * 1.5 * (parts.memory_s + expected * parts.epilogue_s) + parts.launch_s)


def test_one_of_the_stages_has_the_slice_that_is_multiplied():
    problem = shapes.prepared(cases.matmul(64, 64, 6400, torch.float16, "row", "col", ())).problem
    tile = {"BM": 64, "BN": 64, "BK": 64, "threads": 128}
    steps = [product(problem, tile | {"stages": stages}, H200).steps for stages in (1, 2, 3, 5)]
    assert steps == [102, 102, 52, 27]


def test_runs_at_different_k_share_nothing_in_l2():
    """A long K: 200 tiles, 68 of them shared to the slice. By as many programs each, neighbours are at the same k."""
    problem = shapes.prepared(cases.matmul(1280, 2560, 128256, torch.float16, "row", "col", ())).problem
    tile = {"BM": 128, "BN": 128, "BK": 64, "threads": 256, "GROUP_M": 10}
    whole, even, odd = (
        product(problem, tile | more, H200).dram
        for more in ({}, {"programs": 132, "waves": 1, "sharers": 68}, {"programs": 132, "waves": 1})
    )
    results = 1280 * 2560 * 2
    assert even - results * 132 / 200 == pytest.approx(whole - results)
    assert odd - results * (200 - 68) / 200 == pytest.approx((whole - results) * 132 / 200 + 68 * 256 * 128256 * 2)


def test_seconds_are_those_of_the_parts_as_sustained():
    """Contenders of one kernel and of two, and the same among other contenders."""
    sustained = efficiency.Sustained(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
    works = (kernel(flops=1e6, fetched=1e4, dram=1e6, steps=9.0, epilogue=1e5),) * 2
    one, both = estimate(works[0], sustained=sustained), estimate(*works, sustained=sustained)
    *overlapping, epilogue, launch = (getattr(one, f"{part}_s") for part in efficiency.PARTS)
    assert one.seconds == pytest.approx(model.overlapped(*overlapping) + epilogue + launch)
    assert launch == pytest.approx(2e-6 / 0.4) and both.launch_s == pytest.approx(2e-6 / 0.4 + 2e-6 / 0.3)
    assert both.seconds - one.seconds == pytest.approx(model.overlapped(*overlapping) + epilogue + 2e-6 / 0.3)
    others = [model.Contender("tiled", {}, own, of) for own in (works[:1], works, works * 2) for of in (sustained, FULL)]
    found = model.predicted(others, model.rates(H200))
    assert list(found.seconds[[0, 2]]) == pytest.approx([one.seconds, both.seconds]) and len(found.seconds) == 6
    of_parts = [[getattr(known, f"{part}_s") for part in efficiency.PARTS] for known in (model.estimates(found)[2], both)]
    assert of_parts[0] == pytest.approx(of_parts[1])


@pytest.mark.parametrize("target", [t for t in KNOWN if t.is_gpu], ids=lambda t: t.name)
def test_every_gpu_has_rates(target):
    rate = model.rates(target)
    assert min(rate.l2, rate.dram, rate.latency, rate.launch, rate.flops["ieee"]) > 0
    assert rate.dram == target.dram_bandwidth and rate.flops["ieee"] * target.sms == pytest.approx(target.peak("ieee"))


def test_a_gpu_without_figures_gets_the_reference_s_in_proportion():
    unknown = dataclasses.replace(H200, name="a new one", sms=66, dram_bandwidth=0.0, l2_bandwidth=0.0, peaks={})
    rate, known = model.rates(unknown), model.rates(H200)
    assert rate.dram == known.dram / 2 and rate.flops["fp16"] == pytest.approx(known.flops["fp16"])
    assert efficiency.sustained("a new one") is efficiency.sustained("a new one")
    assert efficiency.sustained("a new one").keys() == efficiency.sustained("h200").keys()


def test_a_config_s_name_has_its_own_numbers_only():
    same = [efficiency.config_name({"BM": 128, "BLOCKS": blocks, "SPLITS": splits}) for blocks, splits in ((132, 2), (114, 4))]
    assert same == ["config BM=128"] * 2
    assert efficiency.config_name({"BM": 64}) != same[0] != efficiency.config_name({"BN": 128})


def test_a_config_has_a_factor_on_operands_that_lie_so():
    gemm = GemmProblem(torch.float32, torch.float32, "ieee", False, 64, 64, 64, 1.0, 0.0, "row", "col")
    layouts = efficiency.layouts_of(gemm)
    assert layouts == "a_layout row b_layout col" and efficiency.layouts_of(kernel()) == ""
    name = efficiency.in_layouts("config BM=64", layouts)
    assert (
        efficiency.is_in_layouts(name)
        and not efficiency.is_in_layouts("config BM=64")
        and not efficiency.is_in_layouts("b_layout col")
    )
    own = dataclasses.replace(FULL, factors={"config BM=64": 1.5, name: 2.0}, timed=True)
    assert own.of_config(config_of(BM=64), layouts) == (3.0, True)
    assert own.of_config(config_of(BM=64), "a_layout row b_layout row") == own.of_config(config_of(BM=64)) == (1.5, True)


def test_a_config_was_timed_if_records_have_it():
    """Not if they have each of its numbers in some other config; numbers that follow from the problem do not count."""
    factors = {"config BM=64 BN=64": 1.2, "config BM=128 BN=128": 1.0}
    own = dataclasses.replace(FULL, timed=True, factors=factors, unseen=1.5)
    assert own.of_config(config_of(BM=64, BN=64)) == (1.2, True)
    assert own.of_config(config_of(BM=128, BN=128, SPLITS=77)) == (1.0, True)
    for new in ({"BM": 64, "BN": 128}, {"BM": 192, "BN": 64}, {"BM": 64, "BN": 64, "CLUSTER": 2}, {"BM": 64}):
        assert own.of_config(config_of(**new)) == (1.5, False)
    assert dataclasses.replace(own, timed=False).of_config(config_of(BM=64, BN=64)) == (1.2, False)
