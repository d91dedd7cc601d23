"""Classes are drawn as the table says: ranges, types, layouts, multiples; the same for a seed; with the table's goals."""

import itertools
from collections import Counter

import pytest
import torch

from perf.measure import classes, shapes
from perf.measure.classes import CLASSES

HALF = {torch.float16, torch.bfloat16}
SINGLE = {torch.float32}
NUMBER, SEEDS = 16, (0, 5)

# the goals: geometric mean, none below
GOALS = {
    "16-bit large": (1.00, 0.90),
    "16-bit prefill": (1.00, 0.90),
    "16-bit decode": (1.05, 0.92),
    "16-bit training": (1.00, 0.90),
    "16-bit batched": (1.05, 0.92),
    "16-bit deep": (1.05, 0.92),
    "16-bit fused": (1.20, 0.95),
    "16-bit unaligned": (2.5, 1.0),
    "tf32": (1.05, 0.92),
    "fp8": (1.00, 0.90),
    "int8": (1.5, 1.0),
    "fp64": (1.00, 0.92),
    "fp32 squarish": (1.02, 0.92),
    "fp32 tall or flat": (1.02, 0.92),
    "fp32 deep": (1.02, 0.92),
    "fp32 shallow": (1.02, 0.92),
    "fp32 accuracy below 20 GFLOP": (2.0, 1.0),
    "fp32 accuracy from 20 GFLOP": (3.5, 1.0),
    "gemv fp32": (1.10, 0.95),
    "gemv 16-bit": (1.10, 0.95),
    "gemv batched": (1.10, 0.95),
    "conv 16-bit dense": (1.00, 0.85),
    "conv tf32 dense": (1.00, 0.85),
    "conv fp32 dense": (1.1, 0.85),
    "conv few channels": (2.5, 1.0),
    "conv stems and patches": (1.5, 0.95),
    "conv depthwise fp32": (1.8, 0.95),
    "conv depthwise 16-bit": (1.8, 0.95),
    "conv grouped fp32": (1.8, 0.95),
    "conv grouped 16-bit": (1.8, 0.95),
    "gradient of input 16-bit": (1.00, 0.85),
    "gradient of input fp32": (1.00, 0.85),
    "gradient of input depthwise": (1.8, 0.95),
    "gradient of weight 16-bit": (1.00, 0.85),
    "gradient of weight fp32": (1.00, 0.85),
    "gradient of weight depthwise": (1.8, 0.95),
}

# class -> (types, least and most of M, N, K, of which they are multiples); None: not of all
PRODUCTS = {
    "16-bit large": (HALF, (400, 9000), (400, 9000), (400, 9000), 8),
    "16-bit prefill": (HALF, (160, 6000), (448, 65536), (448, 32768), 1),
    "16-bit decode": (HALF, (1, 128), (448, 65536), (448, 32768), 1),
    "16-bit training": (HALF, (160, 65536), (448, 32768), (160, 65536), 1),
    "16-bit batched": (HALF, (64, 2000), (64, 2000), (32, 512), 8),
    "16-bit deep": (HALF, (32, 500), (32, 500), (8000, 100_000), 8),
    "16-bit fused": (HALF, (500, 8000), (500, 8000), (200, 4000), 8),
    "16-bit unaligned": (HALF, (300, 4000), (300, 4000), (300, 4000), 1),
    "tf32": (SINGLE, (500, 7000), (500, 7000), (500, 7000), 4),
    "fp8": ({torch.float8_e4m3fn}, (200, 8000), (800, 8000), (800, 8000), 16),
    "int8": ({torch.int8}, (200, 6000), (200, 6000), (200, 6000), 16),
    "fp64": ({torch.float64}, (300, 3000), (300, 3000), (300, 3000), 1),
    "fp32 squarish": (SINGLE, (300, 6000), (300, 6000), (300, 6000), 1),
    "fp32 tall or flat": (SINGLE, (4, 120_000), (4, 120_000), (32, 1500), 1),
    "fp32 deep": (SINGLE, (16, 600), (16, 600), (8000, 120_000), 1),
    "fp32 shallow": (SINGLE, (1000, 12_000), (1000, 12_000), (4, 100), 1),
    "fp32 accuracy below 20 GFLOP": (SINGLE, (700, 7000), (700, 7000), (700, 7000), 8),
    "fp32 accuracy from 20 GFLOP": (SINGLE, (700, 7000), (700, 7000), (700, 7000), 8),
}
NT_ONLY = ("16-bit prefill", "16-bit decode", "fp8", "int8")
# class -> (types, precisions)
CONVOLUTIONS = {
    "conv 16-bit dense": (HALF, {"fp16", "bf16"}),
    "conv tf32 dense": (SINGLE, {"tf32"}),
    "conv fp32 dense": (SINGLE, {"ieee"}),
    "conv few channels": (HALF | SINGLE, {"fp16", "bf16", "ieee"}),
    "conv stems and patches": (HALF | SINGLE, {"fp16", "bf16", "ieee", "tf32"}),
    "conv depthwise fp32": (SINGLE, {"ieee"}),
    "conv depthwise 16-bit": (HALF, {"fp16", "bf16"}),
    "conv grouped fp32": (SINGLE, {"ieee"}),
    "conv grouped 16-bit": (HALF, {"fp16", "bf16"}),
    "gradient of input 16-bit": (HALF, {"fp16", "bf16"}),
    "gradient of input fp32": (SINGLE, {"ieee"}),
    "gradient of input depthwise": (HALF | SINGLE, {"fp16", "bf16", "ieee"}),
    "gradient of weight 16-bit": (HALF, {"fp16", "bf16"}),
    "gradient of weight fp32": (SINGLE, {"ieee"}),
    "gradient of weight depthwise": (HALF | SINGLE, {"fp16", "bf16", "ieee"}),
}


@pytest.fixture(scope="module")
def drawn():
    """{class: (cases, problems) of some seeds}"""
    found = {name: [case for seed in SEEDS for case in own.cases(NUMBER, seed)] for name, own in CLASSES.items()}
    return {name: (cases, [shapes.prepared(case).problem for case in cases]) for name, cases in found.items()}


def problems(drawn, name):
    return drawn[name][1]


def test_goals_are_those_of_the_table():
    assert {name: (own.mean, own.worst) for name, own in CLASSES.items()} == GOALS
    assert {*PRODUCTS, *CONVOLUTIONS, "gemv fp32", "gemv 16-bit", "gemv batched"} == CLASSES.keys()


def test_a_seed_draws_the_same_and_fewer_are_the_first_of_more():
    for own in CLASSES.values():
        names = [case.name for case in own.cases(8, 3)]
        assert names == [case.name for case in own.cases(8, 3)] and [case.name for case in own.cases(3, 3)] == names[:3]
        assert len({*names, *(case.name for case in own.cases(8, 4))}) > 12, "another seed draws others"


def test_names_are_unique_and_say_the_class(drawn):
    for name, (cases, _) in drawn.items():
        assert all(case.chosen and classes.class_of(case.name) is CLASSES[name] for case in cases)
        assert max(Counter(case.name for case in cases[:NUMBER]).values()) == 1
    assert classes.class_of("llm prefill: 8x8x8") is None


def test_classes_take_turns():
    cases = classes.drawn(["fp64", "tf32"], 0, 2)
    assert [case.name.partition(":")[0] for case in cases] == ["fp64", "tf32"] * 2


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_in_range(drawn, name):
    types, *ranges, multiple = PRODUCTS[name]
    found = problems(drawn, name)
    assert {p.op for p in found} == {"matmul"} and {p.dtype for p in found} == types
    for p in found:
        for size, (least, most) in zip((p.m, p.n, p.k), ranges):
            assert least <= size <= most and size % multiple == 0
    layouts = {(p.a_layout, p.b_layout) for p in found}
    if name in NT_ONLY:
        assert layouts == {("row", "col")}
    elif name == "16-bit training":
        assert layouts == {("row", "row"), ("col", "row")}
    else:
        assert layouts == set(itertools.product(("row", "col"), repeat=2))


@pytest.mark.parametrize("name", ["fp64", "fp32 squarish", "fp32 tall or flat", "fp32 deep", "fp32 shallow"])
def test_sizes_are_no_multiples_where_a_class_allows_it(drawn, name):
    found = problems(drawn, name)
    assert sum(p.n % 8 > 0 and p.k % 8 > 0 for p in found) > len(found) / 2


def test_traits_of_products(drawn):
    of = {name: problems(drawn, name) for name in PRODUCTS}
    assert all(p.m % 2 and p.n % 2 and p.k % 2 for p in of["16-bit unaligned"])
    assert sum(p.m % 8 > 0 for p in of["16-bit prefill"]) > 20 and any(p.m % 8 for p in of["16-bit decode"])
    assert any(p.k % 8 for p in of["16-bit training"] if p.a_layout == "col"), "K of a weight's gradient: the tokens"
    assert all(6 <= p.batch <= 128 for p in of["16-bit batched"])
    assert all(p.bias and p.activation in ("gelu", "silu") for p in of["16-bit fused"])
    assert {p.accumulate for p in of["fp8"]} == {"fp32", "fast"} and {p.out_dtype for p in of["fp8"]} == {torch.bfloat16}
    assert {p.scales for p in of["fp8"]} == {"matrix"}
    assert {p.precision for p in of["tf32"]} == {"tf32"}
    plain = {p.precision for name, found in of.items() if name.startswith("fp32") and "accuracy" not in name for p in found}
    assert plain == {"ieee"}
    few, many = of["fp32 accuracy below 20 GFLOP"], of["fp32 accuracy from 20 GFLOP"]
    assert max(p.flops for p in few) < 20e9 <= min(p.flops for p in many)
    assert {p.precision for p in (*few, *many)} == {classes.AS_FP32}
    for p in of["fp32 tall or flat"]:
        assert max(p.m, p.n) >= 8000 and min(p.m, p.n) <= 200


def test_some_deep_products_have_few_tiles_and_a_k_that_no_tile_divides(drawn):
    """As those of which cuBLASLt's split-K drops the rest of K."""
    deep = problems(drawn, "16-bit deep")
    assert sum(p.m * p.n <= 8 * 128 * 128 and p.k % 64 > 0 for p in deep) > len(deep) / 2


@pytest.mark.parametrize("name, types", [("gemv fp32", SINGLE), ("gemv 16-bit", HALF), ("gemv batched", HALF | SINGLE)])
def test_matrices_times_vectors(drawn, name, types):
    found = problems(drawn, name)
    assert {p.op for p in found} == {"gemv"} and {p.dtype for p in found} == types
    assert 0 < sum(p.a_layout == "col" for p in found) < len(found) / 2
    if name == "gemv batched":
        assert all(2 <= p.batch <= 256 and min(p.m, p.n) >= 32 and max(p.m, p.n) <= 4000 for p in found)
        return
    kinds = {
        "wide": [p for p in found if 200 <= p.m <= 4000 and 200 <= p.n <= 20_000],
        "tall": [p for p in found if 10_000 <= p.m <= 800_000 and 2 <= p.n <= 200],
        "long": [p for p in found if p.m <= 40 and 50_000 <= p.n <= 4_000_000],
        "squarish": [p for p in found if 0.7 < p.n / p.m < 1.4],
    }
    assert all(kinds.values()) and {id(p) for own in kinds.values() for p in own} == {id(p) for p in found}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(drawn, name):
    found = problems(drawn, name)
    types, precisions = CONVOLUTIONS[name]
    op = {"conv": "conv2d", "gradient of input": "conv2d_input", "gradient of weight": "conv2d_weight"}
    assert {p.op for p in found} == {next(value for key, value in op.items() if name.startswith(key))}
    assert {p.dtype for p in found} <= types and len({p.dtype for p in found}) == len(types)
    assert {p.precision for p in found} == precisions
    assert {p.channels_last for p in found} == {False, True}


def dense(name):
    return not any(word in name for word in ("depthwise", "grouped", "few", "stems"))


@pytest.mark.parametrize("name", [name for name in CONVOLUTIONS if dense(name)])
def test_dense_layers(drawn, name):
    found = problems(drawn, name)
    assert all(32 <= p.c <= 640 and 32 <= p.k <= 640 and p.groups == 1 for p in found)
    assert all(2_000_000 <= p.n * p.c * p.h * p.w <= 20_000_000 for p in found)
    assert {p.r for p in found} == {1, 3, 5} and {p.stride for p in found} == {(1, 1), (2, 2)}
    assert any(p.dilation == (2, 2) for p in found) and any(p.w % 2 for p in found)
    assert any(p.c % 8 for p in found) and any(p.k % 8 for p in found)


def test_special_layers(drawn):
    few, stems = problems(drawn, "conv few channels"), problems(drawn, "conv stems and patches")
    assert all(p.c <= 32 and p.k <= 32 and 3 <= p.r <= 11 and min(p.h, p.w) >= 200 and max(p.h, p.w) <= 1600 for p in few)
    assert {(p.c, p.h, p.w) for p in stems} == {(3, 224, 224)}
    kinds = {(7, 2, 3), (4, 4, 0), (14, 14, 0), (16, 16, 0), (11, 4, 2)}
    assert {(p.r, p.stride[0], p.padding[0]) for p in stems} == kinds
    for name in CONVOLUTIONS:
        if "depthwise" in name:
            for p in problems(drawn, name):
                assert p.groups == p.c == p.k and 32 <= p.c <= 768 and 7 <= p.h <= 80 and p.r in range(3, 14, 2)
        if "grouped" in name:
            for p in problems(drawn, name):
                assert 2 <= p.groups <= 32 and 4 <= p.c // p.groups <= 32 and 7 <= p.w <= 80
                assert p.stride in ((1, 1), (2, 2))


def test_no_draw_takes_long(drawn):
    for name, (cases, found) in drawn.items():
        assert all(shapes.is_affordable(shapes.Shape(name, *pair)) for pair in zip(cases, found))
