"""Suites hold what they promise; operands are reproducible, random and laid out as named."""

import importlib

import pytest
import torch

from perf.measure.cases import Operand
from perf.measure.suites import SUITES

CPU = torch.device("cpu")
CASES = [pytest.param(case, id=f"{suite}-{case.op}-{case.name}") for suite, cases in SUITES.items() for case in cases]


def prepare(case, seed=0):
    args, kwargs = case.arguments(seed, CPU)
    return importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)


@pytest.mark.parametrize("case", SUITES["smoke"], ids=lambda case: f"{case.op}-{case.name}")
def test_outlines_have_the_operands_strides(case):
    (args, named), (outlined, also_named) = case.arguments(0, CPU), case.outlines()
    tensors = [
        [*a, *(t for t in n.values() if isinstance(t, torch.Tensor))] for a, n in ((args, named), (outlined, also_named))
    ]
    assert [(t.shape, t.stride(), t.dtype) for t in tensors[0]] == [(t.shape, t.stride(), t.dtype) for t in tensors[1]]


@pytest.mark.parametrize("suite", SUITES)
def test_names_are_unique(suite):
    names = [(case.op, case.name) for case in SUITES[suite]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", [c for c in CASES if not c.values[0].gpu_only])
def test_every_case_is_a_valid_call(case):
    problem = prepare(case).problem
    assert problem.op == case.op
    assert problem.flops > 0


def test_smoke_reaches_every_precision_and_layout():
    problems = [prepare(case).problem for case in SUITES["smoke"]]
    assert {p.op for p in problems} == {"gemm", "gemv", "conv2d", "matmul"}
    packed = {"int4", "uint4", "b1_xor", "b1_and"}
    assert {p.precision for p in problems} == {"ieee", "fp16", "bf16", "int8", "tf32", "fp64", "fp8", "uint8"} | packed
    assert any(p.op == "matmul" and p.fused == ("alpha", "beta", "bias", "activation") for p in problems)
    assert {p.a_layout for p in problems if p.op == "gemm"} == {"row", "col"}
    assert any(p.op == "conv2d" and p.channels_last for p in problems)
    assert max(p.flops for p in problems) < 3e6  # the emulation and the interpreter must finish in seconds


def test_seeds_have_the_sizes_of_the_seeds():
    small_gemm, gemm, big_gemm = (c for c in SUITES["seeds"] if c.op == "gemm")
    gemvs = [c for c in SUITES["seeds"] if c.op == "gemv"]
    small_conv, conv, *images = (c for c in SUITES["seeds"] if c.op == "conv2d")
    half_to_float, half, tf32 = (c for c in SUITES["seeds"] if c.op == "matmul")
    assert prepare(gemm).problem.describe().items() >= {"m": 1024, "n": 1024, "k": 1024, "alpha": 1.5, "beta": 0.5}.items()
    assert [(p.m, p.n) for p in (prepare(c).problem for c in gemvs)] == [(16384, 16), (16384, 32), (16384, 128)]
    expected = {"n": 1, "c": 6, "k": 6, "h": 768, "w": 512, "r": 6, "s": 6}
    assert prepare(conv).problem.describe().items() >= expected.items()
    matmuls = [prepare(c).problem for c in (half_to_float, half, tf32)]
    assert {(p.m, p.k, p.n) for p in matmuls} == {(1024, 256, 128)}
    assert [p.precision for p in matmuls] == ["fp16", "fp16", "tf32"]
    assert [p.out_dtype for p in matmuls] == [torch.float32, torch.float16, torch.float32]
    sizes = ((768, 512), (1024, 768), (1920, 1080), (1920, 2400))
    held = {(c.operands[0].shape, c.operands[1].shape) for c in images}
    assert held == {((1, 3, *size), (3, 3, taps, taps)) for size in sizes for taps in (3, 6)}
    assert [c for c in SUITES["seeds"] if c.gpu_only] == [gemm, big_gemm, conv, *images] and big_gemm.name == "4096x4096x4096"
    assert small_gemm.options == gemm.options and small_conv.operands[1] == conv.operands[1], "twins of what a CPU cannot run"


def test_images_have_the_sizes_of_the_seed_in_both_layouts():
    held = {(c.operands[0].shape, c.operands[1].shape[2], c.operands[0].layout) for c in SUITES["image"]}
    for size in ((768, 512), (1024, 768), (1920, 1080), (1920, 2400)):
        for layout in ("row", "channels_last"):
            assert {((1, 3, *size), 3, layout), ((1, 3, *size), 6, layout), ((1, 6, *size), 6, layout)} <= held
    filters = {(c.operands[1].shape, c.options["groups"]) for c in SUITES["image"] if c.operands[0].shape == (1, 3, 1080, 1920)}
    assert filters == {((3, 1, taps, taps), 3) for taps in (5, 9, 15, 21, 31)} | {((6, 1, 3, 3), 3)}
    groups = [(c.options["groups"], c.operands[1].shape[1]) for c in SUITES["grouped"]]
    assert any(per_group == 1 for _, per_group in groups) and any(per_group > 1 for _, per_group in groups)


def test_resnet50_has_the_layers_of_the_model():
    """Its FLOPs: 53 convolutions, of which these are the distinct ones, are 4.09 G multiply-adds an image."""
    prepare = importlib.import_module("tritonkernels.conv2d").prepare
    cases = [c for c in SUITES["resnet50"] if c.gpu_only]
    problems = [prepare(*c.outlines()[0], **c.outlines()[1]).problem for c in cases]
    kinds = {(p.n, p.dtype, p.channels_last) for p in problems}
    assert kinds == {(32, torch.float16, True), (1, torch.float16, True), (1, torch.float32, False)}
    one = [p for p in problems if p.n == 1 and p.dtype == torch.float32]
    assert len(one) == 23 and len(problems) == 3 * 23 == 3 * len({(p.c, p.h, p.k, p.r, p.stride) for p in problems})
    times = [1, 1, 3, 4, 2, 1, 1, 4, 1, 3, 3, 1, 1, 6, 1, 5, 5, 1, 1, 3, 1, 2, 2]  # in the model
    assert sum(times) == 53
    assert sum(n * p.flops for n, p in zip(times, one)) == pytest.approx(2 * 4.087e9, rel=1e-3)


def test_gemv_walks_the_axis_of_n():
    """By calls in a row past L2; what fits in half of an L2 of 32 MB also within it."""
    prepare = importlib.import_module("tritonkernels.gemv").prepare
    rotating, resident = (
        [prepare(*case.outlines()[0]).problem for case in SUITES["gemv"] if case.cache == cache]
        for cache in ("rotating", "resident")
    )
    assert len(rotating) + len(resident) == len(SUITES["gemv"])
    assert resident == [p for p in rotating if p.batch * p.m * p.n * p.a_dtype.itemsize <= 2**24]
    problems = rotating
    rows = [p for p in problems if p.m == 16384 and p.a_layout == "row"]
    assert [p.n for p in rows] == [8, 16, 32, 64, 128, 256, 512, 1000, 1024, 4096, 16384]
    assert {p.a_layout for p in problems} == {"row", "col"} and {p.dtype for p in problems} == {torch.float32, torch.float16}
    assert {(1, 10**6), (64, 65536), (128256, 4096)} <= {(p.m, p.n) for p in problems}
    assert any(p.batch > 1 for p in problems)
    assert max(c.operands[0].shape[-2] * c.operands[0].shape[-1] for c in SUITES["gemv"] if not c.gpu_only) <= 2**21


def sizes(suite):
    """(M, N, K) of the cases that a GPU runs."""
    return [(*c.operands[0].shape[:1], c.operands[1].shape[1], c.operands[0].shape[1]) for c in SUITES[suite] if c.gpu_only]


def test_tensor_core_suites_have_the_sizes_that_they_are_for():
    assert {n for n, *_ in sizes("square")} == {256, 512, 1024, 2048, 4096, 8192}
    assert all(min(m, n) <= 64 or (m, n, k) == (256, 256, 65536) for m, n, k in sizes("skinny"))
    assert {m for m, *_ in sizes("llm")} == {1, 16, 256, 4096}
    assert {(k, n) for _, n, k in sizes("llm")} == {(4096, n) for n in (4096, 1024, 14336, 128256)} | {(14336, 4096)}
    assert {size for triple in sizes("hopper") for size in triple} == {2048, 4096, 8192}
    assert all(case.operands[1].layout == "col" for suite in ("llm", "hopper") for case in SUITES[suite]), "W^T of a Linear"
    assert {size for triple in sizes("unaligned") for size in triple} == {4096, 4095, 4097, 1000, 333}


@pytest.mark.parametrize("suite", ["square", "skinny", "llm", "hopper", "unaligned", "image", "grouped", "resnet50"])
def test_a_cpu_has_a_few_small_cases_of_each(suite):
    problems = [prepare(case).problem for case in SUITES[suite] if not case.gpu_only]
    assert problems and max(p.flops for p in problems) < 5e6


def test_the_seed_decides_the_values():
    case = SUITES["smoke"][0]
    first, again, other = (case.arguments(seed, CPU)[0] for seed in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert not any(torch.equal(a, b) for a, b in zip(first, other))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
def test_values_are_random_and_not_symmetric(dtype):
    values = Operand((40, 40), dtype).draw(torch.Generator().manual_seed(0))
    assert values.dtype == dtype
    assert values.unique().numel() > 100
    assert not torch.equal(values, values.T)


@pytest.mark.parametrize(("layout", "strides"), [("row", (5, 1)), ("col", (1, 4)), ("pitched", (8, 1))])
def test_layouts(layout, strides):
    draw = Operand((4, 5), layout=layout).draw(torch.Generator().manual_seed(0))
    assert draw.stride() == strides
    assert torch.equal(draw, Operand((4, 5)).draw(torch.Generator().manual_seed(0)))


def test_the_gaps_between_pitched_rows_are_poison():
    draw = Operand((4, 5), layout="pitched").draw(torch.Generator().manual_seed(0))
    assert draw.as_strided((4, 3), (8, 1), 5).isnan().all()


def test_arguments_keep_their_layout_on_the_device():
    pitched = next(c for c in SUITES["smoke"] if c.operands[0].layout == "pitched")
    a = pitched.arguments(0, CPU)[0][0]
    assert a.stride() == (a.shape[1] + 3, 1)
