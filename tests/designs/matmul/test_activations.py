"""Quick activations of both packages, next to float64: every number of 16 bits, fp32 from all binades, on a GPU all of fp32.

The bounds are those that docs/numerics.md derives, relative to |x|; below the least normal number of fp32, that number.
"""

import re
from pathlib import Path

import pytest
import torch

import tritonkernels
from cuda_reference.build import load
from tests.harness import DEVICES, prepare
from tritonkernels import backend, numerics
from tritonkernels.matmul.parts.arguments import epilogue_of

HERE = Path(__file__).parent
ROOT = Path(tritonkernels.__file__).parents[1]
NAMES = {"gelu": "GELU", "silu": "SILU"}
BOUNDS = {"gelu": 2**-20.9, "silu": 2**-21.8}
BY_ERF = 2**-22.3  # both, in results of fp32
TINY = torch.finfo(torch.float32).tiny
ALL, CHUNK = 2**32, 2**26


def of_cuda(device):
    of = {"": "__half", " in fp32": "float"}
    names = {f"{n}{out}": f"activation::apply<{of[out]}, matmul::{number}>" for out in of for n, number in NAMES.items()}
    names |= {name: f"activation::{name}" for name in ("exp2", "reciprocal")}
    kernels = load(HERE / "kernels/activation.cuh", list(names.values()), "simt" if device == "cpu" else "cuda")

    def run(name, x):
        y = torch.full_like(x, 7.0)
        stream = 0 if device == "cpu" else torch.cuda.current_stream().cuda_stream
        kernels[names[name]]((-(-x.numel() // 256), 1, 1), (256, 1, 1), 0, stream, x.data_ptr(), y.data_ptr(), x.numel())
        return y

    return run


def of_triton(device):
    if backend.device_type() != device:
        pytest.skip(f"the {backend.name()} backend serves {backend.device_type()} tensors")
    from tritonkernels.language.activation import activated
    from tritonkernels.language.triton import tl, triton

    @triton.jit
    def apply(x_ptr, y_ptr, n, ACTIVATION: tl.constexpr, QUICK: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + i, activated(tl.load(x_ptr + i, mask=i < n, other=0), ACTIVATION, QUICK), mask=i < n)

    apply.fn.__globals__.update(tl=tl, activated=activated)

    def run(name, x):
        y, block = torch.full_like(x, 7.0), 2**16 if device == "cpu" else 1024
        name, *in_fp32 = name.split(" in ")
        apply[(-(-x.numel() // block),)](x, y, x.numel(), ACTIVATION=name, QUICK=not in_fp32, BLOCK=block)
        return y

    return run


PACKAGES = {"cuda_reference": of_cuda, "tritonkernels": of_triton}


def check(name, x, y, bound):
    """Compare what an activation makes of x with float64."""
    exact, y = numerics.ACTIVATIONS[name][0](x.double()), y.double()
    assert torch.equal(exact.isnan(), y.isnan()) and torch.equal(exact.isinf(), y.isinf())
    finite = exact.isfinite()
    error = torch.where(finite, (y - exact).abs(), 0)
    excess = error - bound * torch.where(finite, x.double().abs(), 0) - TINY
    at = excess.argmax()
    assert excess[at] <= 0, f"{name}({x[at]}) = {y[at]}, not {exact[at]}"
    assert torch.equal(y[exact.isinf()], exact[exact.isinf()])


def of_16_bits(dtype):
    return torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype).float()


def of_32_bits():
    """Random mantissas of every exponent and sign, and where a GELU is hard: random numbers up to 20."""
    every = torch.arange(512, dtype=torch.int32).repeat_interleave(500) << 23
    bits = every | torch.randint(0, 2**23, every.shape, dtype=torch.int32)
    return torch.cat([bits.view(torch.float32), 40 * torch.rand(300_000) - 20])


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered", "ignore:divide by zero")
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_16_bits_and_many_of_32(package, name):
    run = PACKAGES[package]("cpu")
    for x in (of_16_bits(torch.float16), of_16_bits(torch.bfloat16), of_32_bits()):
        check(name, x, run(name, x), BOUNDS[name])


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("name", NAMES)
def test_results_of_32_bits_are_not_quick(package, name):
    x = of_32_bits()
    y = PACKAGES[package]("cpu")(f"{name} in fp32", x)
    check(name, x, y, BY_ERF)
    if name == "silu":  # is exact where a quick one is not: far from 0, relative to the result
        exact = numerics.ACTIVATIONS[name][0](x.double())
        assert ((y - exact).abs() <= 2**-21 * exact.abs())[(x.abs() < 80) & (x.abs() > 1e-30)].all()


@pytest.mark.parametrize("dtype, out_dtype", [("float16", None), ("bfloat16", "float32"), ("float32", None)])
def test_results_of_16_bits_are_quick(dtype, out_dtype):
    x, out = torch.empty(8, 8, dtype=getattr(torch, dtype)), out_dtype and getattr(torch, out_dtype)
    problem = prepare("matmul", x, x, activation="gelu", out_dtype=out).problem
    assert epilogue_of(problem).QUICK.value == (problem.out_dtype.itemsize == 2)


@pytest.mark.gpu
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_32_bits(package, name):
    run = PACKAGES[package]("cuda")
    for first in range(-(ALL // 2), ALL // 2, CHUNK):
        x = torch.arange(first, first + CHUNK, dtype=torch.int32, device="cuda").view(torch.float32)
        check(name, x, run(name, x), BOUNDS[name])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name, exact, ulp", [("exp2", torch.exp2, 2), ("reciprocal", torch.reciprocal, 1)])
def test_approximate_instructions_are_as_the_ptx_isa_says(device, name, exact, ulp):
    """At most `ulp` from the correctly rounded number; no subnormal ones. The emulation is off by as much, both ways."""
    x = of_32_bits().to(device)
    y, rounded = of_cuda(device)(name, x), exact(torch.where(x.abs() < TINY, 0 * x, x).double()).float()
    rounded = torch.where(rounded.abs() < TINY, 0 * rounded, rounded)
    normal = (rounded.abs() > 2 * TINY) & rounded.isfinite()
    steps = torch.where(normal, y, 0).view(torch.int32) - torch.where(normal, rounded, 0).view(torch.int32)
    assert (steps.abs() <= ulp).all()
    nearly = ~normal & rounded.isfinite() & (rounded != 0)  # which an error may make zero
    assert ((y - rounded).abs()[nearly] <= 2 * TINY).all()
    others = ~normal & ~nearly
    assert torch.equal(y[others].nan_to_num(nan=3.0), rounded[others].nan_to_num(nan=3.0))
    if device == "cpu":
        assert {-ulp, ulp} <= set(steps.unique().tolist())


def numbers(path):
    """The coefficients of p in a source, the last one first."""
    return re.findall(r"[-+] ?(\d\.\d{7,9})f?;?\n", (ROOT / path).read_text())


def test_both_packages_have_the_same_numbers():
    of_cuda, of_triton = map(numbers, ("cuda_reference/matmul/parts/activation.cuh", "tritonkernels/language/activation.py"))
    assert len(of_cuda) == 5 and of_cuda == of_triton


def test_a_quick_gelu_s_errors_add_up_to_its_bound():
    """The errors of its polynomial, of roundings on the way, and of the power, at most, on both sides of 0."""
    unit, size = 2.0**-24, torch.linspace(0, 8, 400_001, dtype=torch.float64)
    signs = -1, 1, -1, -1, -1
    of_source = numbers("tritonkernels/language/activation.py")
    coefficients = [sign * float(number) for sign, number in zip(signs, of_source, strict=True)]
    p, rounding = torch.zeros_like(size), torch.zeros_like(size)
    for coefficient in coefficients:
        rounding = rounding * size + unit * ((p * size).abs() + (p * size + coefficient).abs())
        p = p * size + coefficient
    p, rounding = p * size, rounding * size + unit * (p * size).abs()
    tail, power = torch.special.erfc(size * 2**0.5) / 2, torch.exp2(p) / 2
    assert (power - tail).abs().max() < 2**-21.65
    of_power = power * (0.6931472 * rounding + 2.5 * 2 * unit + unit)
    for result in (1 - tail, tail):  # over |x|
        assert ((power - tail).abs() + of_power + unit * result).max() < BOUNDS["gelu"]
