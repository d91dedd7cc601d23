"""Autocast lowers what torch lowers: matmul, gemv and the convolutions, but neither gemm, which is fp32, nor float64."""

import pytest
import torch

from tests.harness import available_on, random
from tests.torch_ops.samples import LIBRARIES, both_packages, on_devices, pair_of

LOWERED = ("gemv", "matmul", "conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias")


@both_packages
@pytest.mark.parametrize("name", LOWERED)
@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16))
@on_devices
def test_operands_are_lowered(package, name, dtype, device):
    """The result is that of lowered operands, and gradients come back in the operands' own type."""
    pair = pair_of(package, name, device, torch.float32)
    tensors = [t.requires_grad_() for t in pair.make()]
    with torch.autocast(device, dtype):
        result = pair.ours(*tensors)
    assert result.dtype == dtype
    torch.testing.assert_close(result, pair.ours(*(t.to(dtype) for t in tensors)))
    result.sum().backward()
    assert all(t.grad.dtype == torch.float32 for t in tensors)


@both_packages
@on_devices
def test_what_is_not_lowered(package, device):
    pair = pair_of(package, "gemm", device)
    a, b, c = (t.float() for t in pair.make())
    with torch.autocast(device, torch.bfloat16):
        result = package.gemm(a.bfloat16(), b, c)  # raised
        named = package.matmul(a, b, precision="ieee")
        double = package.matmul(a.double(), b.double())
        integers = package.matmul(a.to(torch.int8), b.to(torch.int8))
    assert (result.dtype, named.dtype, double.dtype, integers.dtype) == (
        torch.float32,
        torch.float32,
        torch.float64,
        torch.int32,
    )
    torch.testing.assert_close(result, package.gemm(a.bfloat16().float(), b, c))
    torch.testing.assert_close(named, a @ b)


@both_packages
@pytest.mark.parametrize("op", ("matmul", "conv2d"))
@on_devices
def test_the_precision_of_torch_is_lowered_as_torch_s(package, op, device):
    available_on(LIBRARIES[package], device)
    shapes = ((8, 16), (16, 8)) if op == "matmul" else ((1, 2, 5, 5), (3, 2, 3, 3))
    tensors = [random(*shape, device=device) for shape in shapes]
    with torch.autocast(device, torch.bfloat16):
        result = getattr(package, op)(*tensors, precision="torch")
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result, getattr(package, op)(*(t.bfloat16() for t in tensors)))


@both_packages
@on_devices
def test_scales_of_int8_weights_stay_float32(package, device):
    a = torch.randint(-100, 100, (8, 16), dtype=torch.int8, device=device)
    x, scale = random(16, device=device), random(8, device=device)
    with torch.autocast(device, torch.float16):
        result = package.gemv(a, x, scale=scale)
    torch.testing.assert_close(result, package.gemv(a, x.half(), scale=scale))
