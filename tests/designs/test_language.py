"""The roundings that our Triton code does itself, against their definitions, for all kinds of bit patterns."""

import numpy as np
import pytest
import torch

from tritonkernels import backend

pytestmark = [
    pytest.mark.skipif(backend.name() != "interpreter", reason="the GPU's own conversions are tested through matmul"),
    pytest.mark.filterwarnings("ignore:overflow encountered in cast"),  # numpy warns that fp32 overflows fp16, as it should
]


@pytest.fixture(scope="module")
def kernels():
    from tritonkernels.language.dot import fp8_to_fp32, round_to_tf32, settled
    from tritonkernels.language.epilogue import rounded
    from tritonkernels.language.triton import tl, triton

    @triton.jit
    def to_tf32(x_ptr, out_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out_ptr + i, round_to_tf32(tl.load(x_ptr + i)))

    @triton.jit
    def to_result(x_ptr, out_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out_ptr + i, rounded(tl.load(x_ptr + i), out_ptr.dtype.element_ty))

    @triton.jit
    def from_fp8(x_ptr, out_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out_ptr + i, fp8_to_fp32(tl.load(x_ptr + i)))

    @triton.jit
    def bits_that_differ(acc_ptr, out_ptr, BYTES: tl.constexpr):
        tl.store(out_ptr, settled(tl.load(acc_ptr), BYTES, "b1_xor"))

    functions = {"round_to_tf32": round_to_tf32, "rounded": rounded, "fp8_to_fp32": fp8_to_fp32, "settled": settled}
    to_tf32.fn.__globals__.update(tl=tl, **functions)
    return to_tf32, to_result, from_fp8, bits_that_differ


def patterns():
    """fp32 bit patterns: every exponent and sign with mantissas around every tie of 10 and of 7 bits, NaNs and infinities."""
    exponents = np.arange(512, dtype=np.uint32) << 23
    ties = [
        0,
        1,
        0xFFF,
        0x1000,
        0x1001,
        0x1FFF,
        0x2000,
        0x3000,
        0x7FFF,
        0x8000,
        0x8001,
        0x18000,
        0x7FF000,
        0x7FFFFF,
        0x400000,
        0x7F8000,
    ]
    bits = (exponents[:, None] | np.array(ties, dtype=np.uint32)).ravel()
    return torch.from_numpy(bits.view(np.float32).copy())


def test_tf32_is_rounded_to_nearest_ties_away(kernels):
    x = patterns()
    out = torch.empty_like(x)
    kernels[0][(1,)](x, out, N=len(x))
    finite = torch.isfinite(x)
    exact = x[finite].double()
    exponent = torch.frexp(exact)[1].clamp(min=-125)  # below it the spacing of fp32, and so of tf32, is constant
    spacing = torch.ldexp(torch.ones_like(exact), exponent - 11)
    nearest = torch.sign(exact) * torch.floor(exact.abs() / spacing + 0.5) * spacing
    expected = nearest.float()  # past the largest finite value: infinite
    assert torch.equal(out[finite], expected)
    assert torch.equal(out[torch.isinf(x)], x[torch.isinf(x)])
    assert torch.isnan(out[torch.isnan(x)]).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_results_are_rounded_to_nearest_even(kernels, dtype):
    x = patterns()
    out = torch.empty(len(x), dtype=dtype)
    kernels[1][(1,)](x, out, N=len(x))
    expected = x.to(dtype)
    numbers = ~torch.isnan(x)
    assert torch.equal(out[numbers], expected[numbers])
    assert torch.isnan(out[~numbers]).all()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_every_fp8_is_the_fp32_that_torch_says(kernels, dtype):
    x = torch.arange(256, dtype=torch.uint8).view(dtype)
    out = torch.empty(256)
    kernels[2][(1,)](x, out, N=256)
    expected = x.float()
    assert torch.equal(out.isnan(), expected.isnan()) and torch.equal(out.nan_to_num(), expected.nan_to_num())


def test_more_differing_bits_than_2_to_the_30(kernels):
    """Twice their number is beyond 31 bits."""
    bits = 2**31 - 2**16
    out = torch.empty(1, dtype=torch.int32)
    for differing in (0, 2**30 + 7, bits - 8, bits):
        kernels[3][(1,)](torch.tensor([2 * differing - bits], dtype=torch.int32), out, BYTES=bits // 8)
        assert out.item() == differing
