"""half and bfloat16 of the CPU emulation against numpy and torch: every pattern, every rounding case."""

from pathlib import Path

import pytest
import torch

from cuda_reference.build import load

SOURCE = Path(__file__).parent / "kernels/float16.cuh"
TYPES = {"half": torch.float16, "__nv_bfloat16": torch.bfloat16}
NAMES = [
    "pairs",
    *(f"{kernel}<{t}>" for t in TYPES for kernel in ("to_float", "arithmetic")),
    *(f"from<{t}, {source}>" for t in TYPES for source in ("float", "double", "int")),
]


@pytest.fixture(scope="module")
def run():
    kernels = load(SOURCE, [f"float16::{name}" for name in NAMES], "simt")

    def run(name, *tensors):
        n = tensors[0].numel()
        kernels[f"float16::{name}"]((-(-n // 256), 1, 1), (256, 1, 1), 0, 0, *(t.data_ptr() for t in tensors), n)

    run.pairs = kernels["float16::pairs"]
    return run


def every_pattern(dtype):
    return torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)


def assert_same(got, expected):
    """The same bits; any NaN for a NaN."""
    nan = expected.isnan()
    assert torch.equal(got.isnan(), nan)
    word = torch.int16 if got.element_size() == 2 else torch.int32
    assert torch.equal(got.view(word)[~nan], expected.view(word)[~nan])


@pytest.mark.parametrize("name", TYPES)
def test_every_pattern_widens_exactly_and_comes_back(run, name):
    values = every_pattern(TYPES[name])
    wide, back = torch.zeros(2**16), torch.zeros(2**16, dtype=TYPES[name])
    run(f"to_float<{name}>", values, wide)
    assert_same(wide, values.float())
    run(f"from<{name}, float>", wide, back)
    assert_same(back, values)


@pytest.mark.parametrize("name", TYPES)
def test_rounding_around_every_tie(run, name):
    """At the midpoint of two neighbours, and one float above and below it."""
    values = every_pattern(TYPES[name])
    values = values[values.isfinite()].float()
    middle = (values + torch.cat([values[1:], values[:1]])) / 2
    cases = torch.cat(
        [
            middle,
            middle.nextafter(torch.tensor(torch.inf)),
            middle.nextafter(torch.tensor(-torch.inf)),
            torch.randn(50000) * 1e-5,
        ]
    )
    edges = torch.tensor(
        [65504.0, 65519.99, 65520.0, 3.4e38, 2**-24, 2**-25, 2.9802326e-08, 1e-45, torch.inf, torch.nan, 0.0, -0.0]
    )
    cases = torch.cat([cases, edges, -edges])
    out = torch.zeros(len(cases), dtype=TYPES[name])
    run(f"from<{name}, float>", cases, out)
    assert_same(out, cases.to(TYPES[name]))


@pytest.mark.parametrize("name", TYPES)
def test_doubles_and_ints_round_once(run, name):
    """A double just above a tie: rounding to float first would put it on the tie."""
    dtype = TYPES[name]
    one, step = 1.0, torch.finfo(dtype).eps
    hairs = torch.tensor(
        [one + step / 2 + 2.0**-40, one + step / 2, one + step / 2 - 2.0**-40, -(one + 1.5 * step - 2.0**-40)],
        dtype=torch.float64,
    )
    out = torch.zeros(4, dtype=dtype)
    run(f"from<{name}, double>", hairs, out)
    assert out.tolist() == [1 + step, 1, 1, -(1 + step)]
    ints = torch.arange(-70000, 70000, dtype=torch.int32)
    out = torch.zeros(len(ints), dtype=dtype)
    run(f"from<{name}, int>", ints, out)
    assert_same(out, ints.to(dtype))


@pytest.mark.parametrize("name", TYPES)
def test_arithmetic_rounds_once(run, name):
    dtype = TYPES[name]
    torch.manual_seed(0)
    a, b, c = (every_pattern(dtype)[torch.randperm(2**16)] for _ in range(3))
    out = torch.zeros(7, 2**16, dtype=dtype)
    run(f"arithmetic<{name}>", a, b, c, out)
    for got, expected in zip(out, [a + b, a - b, a * b, a / b], strict=False):
        assert_same(got, expected)
    larger = torch.where(a.isnan(), b, torch.where(b.isnan(), a, torch.maximum(a, b)))
    assert ((out[5] == larger) | (a.isnan() & b.isnan() & out[5].isnan())).all()
    assert_same(out[6], -a)
    product = a.double() * b.double()
    exact = product + c.double()
    simple = (
        exact.isfinite() & (exact - product == c.double()) & (exact - c.double() == product)
    )  # then the sum in double is exact
    run(f"from<{name}, double>", exact, rounded := torch.zeros(2**16, dtype=dtype))
    assert simple.sum() > 1000
    assert_same(out[4][simple], rounded[simple])


def test_fused_multiply_add_sees_beyond_a_double(run):
    """1.5 bfloat16 steps from a tie's product, decided by an addend 2**-100 away."""
    a = torch.tensor([1 + 2**-7, 1 + 2**-7, 1 + 2**-7], dtype=torch.bfloat16)
    b = torch.tensor([1.5, 1.5, 1.5], dtype=torch.bfloat16)  # 1.5 + 1.5 * 2**-7: half way between two neighbours
    c = torch.tensor([2.0**-100, 0, -(2.0**-100)], dtype=torch.bfloat16)
    out = torch.zeros(7, 3, dtype=torch.bfloat16)
    run("arithmetic<__nv_bfloat16>", a, b, c, out)
    assert out[4].tolist() == [1.5 + 2 * 2**-7, 1.5 + 2 * 2**-7, 1.5 + 2**-7]


def test_pairs(run):
    values = torch.randn(32, 2)
    halves, bfloats, sums = (
        torch.zeros(32, 2, dtype=torch.float16),
        torch.zeros(32, 2, dtype=torch.bfloat16),
        torch.zeros(32, 2),
    )
    run.pairs((1, 1, 1), (32, 1, 1), 0, 0, *(t.data_ptr() for t in (values, halves, bfloats, sums)))
    assert torch.equal(halves, values.half()) and torch.equal(bfloats, values.bfloat16())
    assert torch.equal(sums, (halves.double() * 2 + 1).half().float() + bfloats.float())
