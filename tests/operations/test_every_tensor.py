"""Every tensor that an operation takes: no `out` over any of its elements, and no other device or dtype than its own."""

import importlib
import inspect

import pytest
import torch

from tests.harness import Size, prepare
from tritonkernels import OPS
from tritonkernels.errors import ArgumentError, DeviceError, DtypeError, OverlapError

F32, FP8 = torch.float32, torch.float8_e4m3fn
CALLS = {  # all tensors at once, as shapes and dtypes, and what else it takes then
    "gemm": ({"a": ((6, 6), F32), "b": ((6, 6), F32), "c": ((6, 6), F32)}, {}),
    "gemv": ({"a": ((6, 6), torch.int8), "x": ((6,), F32), "y": ((6,), F32), "scale": ((6,), F32)}, {}),
    "conv2d": (
        {
            "input": ((1, 4, 6, 6), F32), "weight": ((4, 4, 3, 3), F32), "bias": ((4,), F32), "residual": ((1, 4, 4, 4), F32),
        },
        {},
    ),
    "conv2d_input": (
        {"weight": ((4, 4, 3, 3), F32), "grad_output": ((1, 4, 6, 6), F32), "bias": ((4,), F32)},
        {"input_size": Size((1, 4, 8, 8))},
    ),
    "conv2d_weight": ({"input": ((1, 4, 8, 8), F32), "grad_output": ((1, 4, 6, 6), F32)}, {"weight_size": Size((4, 4, 3, 3))}),
    "conv2d_bias": ({"grad_output": ((1, 4, 6, 6), F32)}, {}),
    "matmul": (
        {
            "a": ((8, 8), FP8), "b": ((8, 8), FP8), "c": ((8, 8), F32), "bias": ((8,), F32), "scale_a": ((8, 1), F32),
            "scale_b": ((1, 8), F32),
        },
        {"out_dtype": F32},
    ),
}  # fmt: skip
NO_TENSORS = {
    "alpha", "beta", "stride", "padding", "dilation", "groups", "precision", "memory_format", "accumulate", "activation",
    "input_size", "weight_size", "out_dtype", "out",
    "b_planes", "b_ranges",  # tensors that split() makes: test_reused_operand.py
}  # fmt: skip
CASES = [(op, name) for op, (tensors, _) in CALLS.items() for name in tensors]
EVERY = pytest.mark.parametrize("op, name", CASES)


def call(op, device="cpu", **changed):
    tensors, options = CALLS[op]
    given = {name: torch.ones(shape, dtype=torch.uint8, device=device).to(dtype) for name, (shape, dtype) in tensors.items()}
    return prepare(op, **given | options | changed)


def view(buffer, first, like):
    """A tensor like this one in the bytes from there on."""
    return buffer[first : first + like.numel() * like.itemsize].view(like.dtype).view(like.shape)


@pytest.mark.parametrize("op", OPS)
def test_every_tensor_is_here(op):
    parameters = inspect.signature(importlib.import_module(f"tritonkernels.{op}").prepare).parameters
    assert parameters.keys() - NO_TENSORS == CALLS[op][0].keys()


@EVERY
def test_an_out_over_one_of_its_elements_is_refused(op, name):
    """The last element of one is the first of the other."""
    shape, dtype = CALLS[op][0][name]
    own, out = torch.empty(shape, dtype=dtype), call(op).result
    buffer = torch.ones(2**12, dtype=torch.uint8)
    own_bytes, out_bytes = own.numel() * own.itemsize, out.numel() * out.itemsize
    for own_first, out_first in ((0, own_bytes - out.itemsize), (out_bytes - own.itemsize, 0)):
        over, apart = (view(buffer, out_first + further, out) for further in (0, 2**11))
        given = {name: view(buffer, own_first, own)}
        assert call(op, **given, out=apart).result is apart
        with pytest.raises(OverlapError, match=rf"^out: .*memory shared with {name}"):
            call(op, **given, out=over)


@EVERY
def test_it_is_where_the_others_are(op, name):
    tensors = CALLS[op][0]
    shape, dtype = tensors[name]
    assert call(op, device="meta").result.device.type == "meta"
    if len(tensors) > 1:
        named = name if name != next(iter(tensors)) else r"\w+"  # the first says where the others should be
        with pytest.raises(DeviceError, match=f"^{named}: "):
            call(op, **{name: torch.ones(shape, dtype=torch.uint8, device="meta").to(dtype)})
    with pytest.raises(DeviceError, match=r"^out: "):
        call(op, out=call(op, device="meta").result)


@EVERY
@pytest.mark.parametrize("other", (torch.int16, torch.complex64, torch.bool), ids=str)
def test_no_operation_takes_such_numbers(op, name, other):
    with pytest.raises(DtypeError, match=f"^{name}: "):
        call(op, **{name: torch.ones(CALLS[op][0][name][0], dtype=other)})


@EVERY
def test_its_dtype_goes_with_the_others(op, name):
    """One double among halves: but for `a` and `b` it is the only wrong one."""
    if len(CALLS[op][0]) > 1:
        with pytest.raises(DtypeError):
            call(op, **{name: torch.ones(CALLS[op][0][name][0], dtype=torch.float64)})


@EVERY
def test_it_is_a_tensor(op, name):
    with pytest.raises(DtypeError, match=f"^{name}: "):
        call(op, **{name: [1.0]})


@EVERY
def test_its_shape_goes_with_the_others(op, name):
    shape, dtype = CALLS[op][0][name]
    if op != "conv2d_bias":
        with pytest.raises(ArgumentError, match=r"^\w+: "):
            call(op, **{name: torch.ones([size + 5 for size in shape], dtype=torch.uint8).to(dtype)})
