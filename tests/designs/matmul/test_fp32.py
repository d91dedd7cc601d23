"""precision="fp32": products within ieee's bound, by planes on tensor cores, which compute again what they may have lost."""

import dataclasses
import importlib
import itertools

import pytest
import torch

from tests.designs.matmul.test_planes import split
from tests.harness import DEVICES, LIBRARIES, available_on, padded, prepare, random, run_checked
from tritonkernels import numerics
from tritonkernels.design import as_dict
from tritonkernels.operations.matmul.schemes import AGAIN, FEWEST, MOST
from tritonkernels.target import Target

H200 = Target.named("h200")
DESIGNS = [(library, design) for library in LIBRARIES for design in ("planes", "persistent_planes")][:-1]
OF_DESIGNS = pytest.mark.parametrize("library, design", DESIGNS, ids=lambda value: getattr(value, "package", value))
ON_DEVICES = pytest.mark.parametrize("device", DEVICES)


def wide(*shape, device, exponents=40):
    """Random numbers with that many exponents, and zeros."""
    numbers = torch.ldexp(torch.randn(*shape), torch.randint(-exponents, 0, shape))
    return torch.where(torch.rand(shape) < 0.1, 0.0, numbers).to(device)


def is_as_exact_as_ieee(result, *operands, **options):
    problem = prepare("matmul", *operands, **options).problem
    assert problem.precision == "fp32"
    return numerics.judge(dataclasses.replace(problem, precision="ieee"), result, *operands, **options).ok


@ON_DEVICES
@OF_DESIGNS
@pytest.mark.parametrize("exponents", [1, 40, 120])
def test_any_exponents(library, design, exponents, device):
    """The bound of ieee, and no NaN, which fp16x3 has of the last ones."""
    available_on(library, device)
    a, b = wide(AGAIN + 6, 260, device=device, exponents=exponents), wide(260, 130, device=device, exponents=exponents)
    result, _ = run_checked(library, "matmul", design, a, b, precision="fp32")
    assert is_as_exact_as_ieee(result, a, b, precision="fp32")
    refused, _ = run_checked(library, "matmul", "planes", a, b, precision="fp16x3")
    assert refused.isnan().any() == (exponents == 120) and not result.isnan().any()


@ON_DEVICES
@OF_DESIGNS
def test_losses_that_fp16x3_allows(library, design, device):
    """Elements 2^-36 of the largest of their row or column, whose factor is 0, are all rounded in one direction: 2^-15 of the
    result."""
    available_on(library, device)
    a = torch.full((40, 270), 2.0**-36, device=device) * (1 + random(40, 1, device=device).abs())
    b = torch.full((270, 9), 1.9, device=device)
    a[:, 0], b[0] = 2.0, 0.0
    for operands in ((a, b), (b.mT, a.mT)):
        result, _ = run_checked(library, "matmul", design, *operands, precision="fp32")
        assert is_as_exact_as_ieee(result, *operands, precision="fp32")
        result, _ = run_checked(library, "matmul", "planes", *operands, precision="fp16x3")
        assert not is_as_exact_as_ieee(result, *operands, precision="fp32"), "then this test sees nothing"


@ON_DEVICES
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_what_a_row_may_lose_is_counted(library, device):
    """Elements below 2^-26 of the largest: that much more than the 2^-33 of fp16x3, and each as 64, as 2^-18 is of 2^-12."""
    available_on(library, device)
    x = torch.ones(2, 100, device=device)
    x[0, 1:4], x[0, 4], x[1, 5] = 2.0**-28, 2.0**-25, 0.0
    counts = {mode: split(library, x, mode)[2][0, 2].tolist() for mode in ("fp32", "fp16x3")}
    assert counts["fp32"][0] == 3 * 64 and counts["fp16x3"][0] < 0 and counts["fp32"][1] == 0 == counts["fp16x3"][1]


@ON_DEVICES
@OF_DESIGNS
@pytest.mark.parametrize("activation", ["silu", "relu"])
def test_a_few_tiles_of_a_batch(library, design, device, activation):
    """Rows of one matrix that are computed again, in one tile; with all of an epilogue; the others have the bits of planes."""
    available_on(library, device)
    a, b = random(3, 2 * AGAIN + 5, 270, device=device), random(270, AGAIN + 3, device=device)
    a[1, AGAIN + 7, 1:] *= 2.0**-40
    b[0, 5] = 0.0
    c, bias = random(3, 2 * AGAIN + 5, AGAIN + 3, device=device), random(AGAIN + 3, device=device)
    options = {"alpha": 1.5, "beta": 0.5, "c": c, "bias": bias, "activation": activation, "precision": "fp32"}
    result, _ = run_checked(library, "matmul", design, padded(a), padded(b.mT).mT, **options)
    assert is_as_exact_as_ieee(result, a, b, **options)
    planes, _ = run_checked(library, "matmul", design, padded(a), padded(b.mT).mT, **options | {"precision": "fp16x3"})
    same = result == planes
    assert same[::2].all() and same[1, :AGAIN].all() and not same[1, AGAIN + 7, 5]


@ON_DEVICES
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_splits_of_k(library, device):
    """What is refused follows from the sum of all splits."""
    available_on(library, device)
    a, b = wide(20, 1000, device=device, exponents=120), wide(1000, 30, device=device, exponents=120)
    call = prepare("matmul", a, b, precision="fp32")
    design = {d.name: d for d in library.designs("matmul")}["planes"]
    split = next(c for c in design.configs(call.problem, H200) if as_dict(c)["SPLIT_K"] > 1)
    target = library.target(a.device)
    config = next((c for c in design.configs(call.problem, target) if as_dict(c)["SPLIT_K"] > 1), split)
    result, _ = run_checked(library, "matmul", "planes", a, b, precision="fp32", config=config)
    assert is_as_exact_as_ieee(result, a, b, precision="fp32") and not result.isnan().any()


@ON_DEVICES
@OF_DESIGNS
def test_nan_and_infinities_stay(library, design, device):
    available_on(library, device)
    a, b = wide(9, 300, device=device), wide(300, 11, device=device)
    a[0, 3], a[1, 299], a[2, 5], b[8, 9] = torch.inf, -torch.inf, torch.nan, torch.inf
    b[3, 2] = 2.0**-149
    result, _ = run_checked(library, "matmul", design, a, b, precision="fp32")
    expected = a.double() @ b.double()
    assert torch.equal(expected.isnan(), result.isnan()) and torch.equal(expected.isinf(), result.isinf())


def function(library):
    return importlib.import_module(library.package).matmul


def precision_of(a=(5, 300), b=(300, 7), **options):
    a, b = torch.empty(a, device="meta"), torch.empty(b, device="meta")
    return prepare("matmul", a, b, precision="fp32", **options).problem.precision


def test_it_is_ieee_where_planes_are_not_as_exact():
    assert precision_of() == precision_of((5, FEWEST), (FEWEST, 7)) == "fp32"
    assert precision_of((5, FEWEST - 1), (FEWEST - 1, 7)) == "ieee"
    assert precision_of((1, MOST), (MOST, 1)) == "fp32"
    assert precision_of((1, MOST + 1), (MOST + 1, 1)) == "ieee"
    assert precision_of(alpha=0.0) == "ieee"

    def is_as_exact(k):
        own, ieee = (numerics.bounds._of_sum(k, numerics.MODES[mode]) for mode in ("fp32", "ieee"))
        return own <= ieee

    assert not is_as_exact(FEWEST - 1)
    assert all(map(is_as_exact, [MOST, *range(FEWEST, 5000), *range(5000, MOST, 999)]))


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_what_is_overwritten_is_not_needed_again(library):
    """C may be the result itself."""
    c = torch.empty(5, 7, device="meta")
    assert precision_of(c=c, beta=0.5) == "fp32" and precision_of(c=c, out=c) == "ieee"
    a, b = wide(6, 300, device="cpu"), wide(300, 7, device="cpu")
    c = torch.randn(6, 7)
    for out, precision in ((None, "fp32"), (torch.empty(6, 7), "fp32"), (c, "ieee")):
        assert prepare("matmul", a, b, precision="fp32", c=c, out=out).problem.precision == precision
    expected = a.double() @ b.double() + c
    out = c.clone()
    function(library)(a, b, precision="fp32", c=out, out=out)
    assert torch.allclose(out.double(), expected, rtol=1e-5, atol=1e-5 * expected.abs().max())


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_it_is_chosen_as_fp16x3_is(library):
    """Whose records there are; the kernel that looks for refusals counts, too."""
    chosen = set()
    for m, n, k in itertools.product((300, 1500, 6000), (500, 4000), (300, 2000, 8000)):
        a, b = torch.empty(m, k, device="meta"), torch.empty(k, n, device="meta")
        own, other = (prepare("matmul", a, b, precision=mode).problem for mode in ("fp32", "fp16x3"))
        first, second = library.ranking(own, H200)[0], library.ranking(other, H200)[0]
        chosen.add(first.design.name)
        assert second.estimate.seconds <= first.estimate.seconds <= second.estimate.seconds + 10e-6
    assert {"cuda_cores", "planes" if library.package == "tritonkernels" else "persistent_planes"} <= chosen


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_gradients(library, monkeypatch):
    """Are of this precision, too; on the CPU, where no planes are chosen, that says how they are computed elsewhere."""
    a, b = wide(270, 300, device="cpu").requires_grad_(), wide(300, 280, device="cpu").requires_grad_()
    ran, run = [], type(library).run
    monkeypatch.setattr(type(library), "run", lambda own, call, *of: ran.append(call.problem.precision) or run(own, call, *of))
    result = function(library)(a, b, precision="fp32")
    grad = torch.randn_like(result)
    for got, (left, right) in zip(torch.autograd.grad(result, (a, b), grad), ((grad, b.mT), (a.mT, grad))):
        left, right = left.detach(), right.detach()
        call = prepare("matmul", left, right, precision="ieee")
        assert numerics.judge(call.problem, got, left, right).ok
    assert ran == ["fp32"] * 3
