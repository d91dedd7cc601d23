"""NaN, infinities, zeros, denormals and overflow: as in torch for ieee; the differences of other modes are stated here."""

import math

import pytest
import torch

from tests.harness import (
    DEVICES,
    available_on,
    bits,
    designs,
    one_of_each_program,
    only,
    prepare,
    random,
    refusal,
    run_checked,
    short,
    suited,
    taken,
    transposed,
)
from tritonkernels.numerics import reference

pytestmark = pytest.mark.parametrize("device", DEVICES)

IEEE = [of for of in designs("gemm", "gemv", "conv2d") if taken(*of.values)[0] == torch.float32]
SHAPES = {  # the gradients of conv2d have tests of their own
    "gemm": ((9, 40), (40, 11)),
    "gemv": ((9, 40), (40,)),
    "conv2d": ((3, 2, 6, 7), (4, 2, 3, 3)),
    "matmul": ((9, 40), (40, 11)),
}
TWO_OPERANDS = designs(*SHAPES)


def operands(library, op, design, device, dtype=torch.float32):
    shapes, _ = suited(library, op, design, SHAPES[op])
    return [random(*shape, dtype=dtype, device=device) for shape in shapes]


def first_row(op, result):
    """(the part of the result that depends on the first row of A, or the first image; the rest)."""
    return result[:1], result[1:]


def accepts(library, op, design, device, **kwargs):
    """Skips a call that the design refuses, or computes in another precision; these have tests of their own."""
    call = prepare(op, *operands(library, op, design, device, kwargs.pop("dtype", torch.float32)), **kwargs)
    chosen = {d.name: d for d in library.designs(op)}[design]
    if refusal := chosen.refuses(call.problem, library.target(call.result.device)):
        pytest.skip(refusal)
    if (rounded := chosen.as_rounded(call.problem)) != call.problem:
        pytest.skip(f"it computes {call.problem.precision} as {rounded.precision}")


@one_of_each_program
@short(lambda value: value != math.inf)
@pytest.mark.parametrize("library, op, design", TWO_OPERANDS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_special_value_stays_in_its_row(library, op, design, device, value):
    available_on(library, device)
    dtype, options = taken(library, op, design)
    first, second = operands(library, op, design, device, dtype)
    clean, _ = run_checked(library, op, design, first, second, **options)
    clean = clean.clone()
    first[(0, *(size // 2 for size in first.shape[1:]))] = value
    result, _ = run_checked(library, op, design, first, second, **options)
    touched, rest = first_row(op, result)
    assert not torch.isfinite(touched).all()
    assert torch.equal(bits(rest), bits(first_row(op, clean)[1]))


@one_of_each_program
@pytest.mark.parametrize("library, op, design", designs("matmul"))
def test_no_activation_hides_a_nan(library, op, design, device):
    available_on(library, device)
    dtype, options = taken(library, op, design)
    first, second = operands(library, op, design, device, dtype)
    first[0, 3] = math.nan
    for activation in ("relu", "gelu", "silu"):
        result, _ = run_checked(library, op, design, first, second, activation=activation, **options)
        assert torch.isnan(result[0]).all() and torch.isfinite(result[1:]).all()


@one_of_each_program
@pytest.mark.parametrize("library, op, design", TWO_OPERANDS)
def test_infinity_times_zero_is_nan(library, op, design, device):
    available_on(library, device)
    dtype, options = taken(library, op, design)
    first, second = operands(library, op, design, device, dtype)
    second.zero_()
    first[(0, *(0 for _ in first.shape[1:]))] = math.inf
    result, _ = run_checked(library, op, design, first, second, **options)
    assert torch.isnan(result).any() and torch.isfinite(first_row(op, result)[1]).all()


@one_of_each_program
@pytest.mark.parametrize("library, op, design", IEEE)
def test_denormals_are_neither_flushed_nor_lost(library, op, design, device):
    available_on(library, device)
    first, second = operands(library, op, design, device)
    first *= 2.0**-130
    result, _ = run_checked(library, op, design, first, second)
    exact = reference(op, first, second)
    assert (result != 0).all() and torch.isfinite(result).all()
    if design != "winograd":  # its transforms lose denormals; run_checked has its bound
        assert ((result.double() - exact).abs() <= 50 * 2.0**-149).all()


@one_of_each_program
@pytest.mark.parametrize("library, op, design", IEEE)
def test_large_next_to_small(library, op, design, device):
    available_on(library, device)
    first, second = operands(library, op, design, device)
    first[..., 0] *= 1e30
    first[..., 1] *= 1e-30
    second *= 1e-8
    run_checked(library, op, design, first, second)


@one_of_each_program
@pytest.mark.parametrize("library, op, design", TWO_OPERANDS)
def test_overflow_gives_the_infinity_of_the_right_sign(library, op, design, device):
    available_on(library, device)
    dtype, options = taken(library, op, design)
    first, second = operands(library, op, design, device, dtype)
    first, second = first.abs() + 1, -(second.abs() + 1)
    scale = {torch.float16: 200.0, torch.float64: 1e160}.get(dtype, 1e20)
    result, _ = run_checked(library, op, design, first * scale, second * scale, **options)
    if design == "winograd":  # it adds infinities of both signs
        assert not torch.isfinite(result).any()
    else:
        assert (result == -math.inf).all()


@one_of_each_program
@pytest.mark.parametrize("library, op, design", designs("gemm", "gemv"))
def test_special_alpha_and_beta(library, op, design, device):
    """Rounded to fp32 first: 1e39 is infinite, 1e-46 is 0."""
    available_on(library, device)
    first, second = operands(library, op, design, device)
    addend = random(*prepare(op, first, second).result.shape, device=device)
    for alpha, beta in ((math.nan, 1.0), (1.0, math.nan), (math.inf, 0.0), (1.0, -math.inf), (1e39, 1.0), (1e-46, 1.0)):
        run_checked(library, op, design, first, second, addend, alpha=alpha, beta=beta)


@pytest.mark.parametrize("library, op, design", designs("gemm", "gemv"))
def test_alpha_zero_reads_neither_matrix(library, op, design, device):
    available_on(library, device)
    first, second = operands(library, op, design, device)
    first.fill_(math.nan)
    addend = random(*prepare(op, first, second).result.shape, device=device)
    result, _ = run_checked(library, op, design, first, second, addend, alpha=0.0, beta=1.0)
    assert torch.equal(result, addend)


MODES = {
    "fp16": (torch.float16, {"out_dtype": torch.float32}),
    "bf16": (torch.bfloat16, {}),
    "tf32": (torch.float32, {"precision": "tf32"}),
    "ieee": (torch.float32, {}),
    "fp64": (torch.float64, {}),
    "fp8": (torch.float8_e4m3fn, {}),
    **{mode: (torch.float32, {"precision": mode}) for mode in ("fp16x3", "tf32x3", "bf16x6", "bf16x9")},
}


@only
def takes_the_mode(library, op, design, device, mode):
    dtype, options = MODES[mode]
    return refusal(library, op, design, device, *SHAPES[op], dtype=dtype, **options) is None


@takes_the_mode
@short(lambda mode, pattern: mode == "tf32" or pattern in (0x7F800001, 0xFFFFFFFF))  # tf32 drops 13 bits of the mantissa
@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pattern", [0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800001, 0x7FC00000, 0x7F801FFF])
def test_every_nan_stays_a_nan(library, op, design, device, mode, pattern):
    """A NaN with a payload in the low bits must become neither infinity nor 0."""
    available_on(library, device)
    dtype, kwargs = MODES[mode]
    a, b = operands(library, op, design, device, dtype)
    nan = torch.tensor([pattern - 2**32 if pattern >= 2**31 else pattern], dtype=torch.int32).view(torch.float32).to(device)
    a[3, 5] = nan.to(dtype)[0]
    result, _ = run_checked(library, op, design, a, b, **kwargs)
    assert torch.isnan(result[3]).all() and torch.isfinite(result[[0, 1, 2, 4]]).all()


@takes_the_mode
@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize("mode", MODES)
def test_denormal_operands(library, op, design, device, mode):
    """16- and 8-bit denormals keep all their bits; tf32 ones become multiples of 2^-136, which the bound accounts for."""
    available_on(library, device)
    dtype, kwargs = MODES[mode]
    a, b = operands(library, op, design, device, torch.float64)
    a *= torch.finfo(dtype).smallest_normal / 4
    result, _ = run_checked(library, op, design, a.to(dtype), (b * 8).to(dtype), **kwargs)
    assert (result != 0).any()


@pytest.mark.parametrize("library, op, design", designs("matmul"))
def test_tf32_rounds_the_largest_numbers_to_infinity(library, op, design, device):
    """From (2 - 2^-11) 2^127 on; smaller numbers stay finite."""
    available_on(library, device)
    accepts(library, op, design, device, precision="tf32")
    a, b = around_the_largest_tf32(device)
    result = library.run(prepare(op, a, b, precision="tf32"), design)
    assert (result[0] == math.inf).all() and torch.isfinite(result[1]).all() and (result[2] == -math.inf).all()


@pytest.mark.parametrize("library, op, design", designs("matmul"))
def test_tf32_is_rounded_to_nearest(library, op, design, device):
    """Whichever way ties go. Ignoring the low bits would lose up to 2^-10."""
    available_on(library, device)
    accepts(library, op, design, device, precision="tf32")
    a = random(20, 24, device=device)
    for along_k in (a, transposed(a)):
        result, _ = run_checked(library, op, design, along_k, torch.eye(24, device=device), precision="tf32")
        assert ((result - a).abs() <= 2.0**-11 * a.abs()).all() and not (result.view(torch.int32) & 0x1FFF).any()


@pytest.mark.parametrize("library, op, design", designs("matmul"))
def test_ieee_keeps_the_largest_numbers(library, op, design, device):
    available_on(library, device)
    accepts(library, op, design, device)
    assert torch.isfinite(library.run(prepare(op, *around_the_largest_tf32(device)), design)).all()


def around_the_largest_tf32(device):
    limit = (2 - 2.0**-11) * 2.0**127
    a = torch.tensor([[limit], [math.nextafter(limit, 0) * (1 - 2.0**-20)], [-limit]], device=device)
    return a, torch.full((1, 2), 2.0**-100, device=device)


@one_of_each_program
@pytest.mark.parametrize("library, op, design", TWO_OPERANDS)
def test_zeros_give_zero(library, op, design, device):
    """0 in, 0 out; the sign of a zero is not promised (a sum that starts at +0 loses it, in torch as well)."""
    available_on(library, device)
    dtype, options = taken(library, op, design)
    first, second = operands(library, op, design, device, dtype)
    result, _ = run_checked(library, op, design, first * -0.0, second, **options)
    assert (result == 0).all()
