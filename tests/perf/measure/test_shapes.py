"""Random shapes: the same for a seed, of every family, layout and dtype, within their bounds, and calls that designs accept."""

import collections

import pytest
import torch

from perf.measure import shapes, trial
from tritonkernels.analysis import roofline

OPS = list(shapes.FAMILIES)
NUMBER = 90


@pytest.fixture(scope="module", params=OPS)
def drawn(request):
    return shapes.draw(request.param, NUMBER)


def problems(op, number=NUMBER):
    return [shape.problem for shape in shapes.draw(op, number)]


def test_a_seed_gives_the_same_shapes_and_fewer_are_the_first_of_more(drawn):
    op, keys = drawn[0].problem.op, [shape.key for shape in drawn]
    assert [shape.key for shape in shapes.draw(op, 40)] == keys[:40] and len(set(keys)) == NUMBER
    assert len({shape.key for shape in shapes.draw(op, 600)}) == 600  # without a second look, some would come twice
    assert len(set(keys) & {shape.key for shape in shapes.draw(op, NUMBER, seed=1)}) < NUMBER / 4


def test_families_take_turns(drawn):
    names = list(shapes.FAMILIES[drawn[0].problem.op])
    assert [shape.family for shape in drawn[: len(names)]] == names and drawn[len(names)].family == names[0]


def test_no_shape_is_slow_or_large(drawn):
    for shape in drawn:
        limits = roofline.limits(shape.problem, shapes.H200)
        assert max(limits["memory_s"], limits["compute_s"]) <= 5e-3
        args, named = shape.case.outlines()
        tensors = [t for t in (*args, *named.values(), shapes.prepared(shape.case).result) if isinstance(t, torch.Tensor)]
        assert max(t.numel() * t.element_size() for t in tensors) <= 1e9


def test_some_design_of_each_package_computes_it(drawn, everything):
    for shape in drawn if everything else drawn[::4]:
        for package in ("tritonkernels", "cuda_reference"):
            known = trial.plan(shape, package, shapes.H200, 1).contenders
            assert known, shape.case


def test_gemms_have_all_layouts_and_an_epilogue():
    found = problems("gemm")
    layouts = collections.Counter((p.a_layout, p.b_layout) for p in found)
    assert {("row", "row"), ("row", "col"), ("col", "row")} <= layouts.keys()
    assert any(p.beta for p in found) and any(p.m > 100 * p.n for p in found) and any(p.k > 20 * p.m for p in found)


def test_few_sizes_are_powers_of_two_and_some_are_odd():
    sizes = [size for p in problems("gemm") for size in (p.m, p.n, p.k)]
    powers = sum(size & (size - 1) == 0 for size in sizes)
    assert 0.05 < powers / len(sizes) < 0.5 and any(size % 2 for size in sizes)
    assert {1536, 3072, 5120} & set(sizes)


def test_products_have_every_precision():
    found = problems("matmul", 300)
    assert {p.precision for p in found} >= {"bf16", "fp16", "ieee", "tf32", "tf32x3", "fp64", "int8", "fp8"}
    assert {p.batch > 1 for p in found} == {p.bias for p in found} == {p.beta != 0 for p in found} == {False, True}
    assert {p.activation for p in found} >= {None, "gelu"} and {1, 8} <= {p.m for p in found}


def test_vectors_have_every_type():
    found = problems("gemv")
    assert {p.a_dtype for p in found} == {torch.float32, torch.float16, torch.bfloat16, torch.int8}
    assert {p.a_layout for p in found} == {"row", "col"} and {p.batch > 1 for p in found} == {False, True}


@pytest.mark.parametrize("op", ("conv2d", "conv2d_weight", "conv2d_input"))
def test_convolutions_have_every_kind(op):
    found = problems(op, 150)
    assert {p.precision for p in found} == {"ieee", "tf32", "fp16", "bf16", "fp64"}
    assert {p.channels_last for p in found} == {False, True}
    kinds = (lambda p: p.groups == 1, lambda p: p.groups == p.c > 1, lambda p: 1 < p.groups < p.c)
    assert all(any(kind(p) for p in found) for kind in kinds)
    assert {1, 3, 5, 7} <= {p.r for p in found} and {(1, 1), (2, 2)} <= {p.stride for p in found}
    assert any(p.dilation != (1, 1) for p in found) and any(p.h > 500 for p in found)
    assert op != "conv2d" or any(p.has_bias for p in found)


def test_operands_can_be_drawn():
    smallest = min(shapes.draw("conv2d_weight", 20), key=lambda shape: shape.problem.bytes)
    args, kwargs = smallest.case.arguments(0, torch.device("cpu"))
    assert args[0].shape[0] == smallest.problem.n and tuple(args[1])[2:] == (smallest.problem.r, smallest.problem.s)
    assert kwargs["groups"] == smallest.problem.groups


def test_the_halves_are_the_same_everywhere():
    described = {"m": 3, "dtype": "float32", "stride": (1, 2)}
    assert shapes.key_of("gemm", described) == shapes.key_of("gemm", {"stride": [1, 2], "dtype": "float32", "m": 3})
    assert shapes.key_of("gemm", described) == "da66f72aec66c803"
    halves = collections.Counter(shapes.half(shape.key) for shape in shapes.draw("gemm", 200))
    assert min(halves["fit"], halves["judge"]) > 70
