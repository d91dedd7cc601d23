"""One mistake in a valid call: each changes the call in place, and says which error must name which argument."""

import numpy
import torch
from hypothesis import assume
from hypothesis import strategies as st

from tests.properties.examples import NAMES
from tests.properties.strategies import CALLS, FP8
from tests.properties.wrong import ADDENDS, Wrong, mistake, pick
from tritonkernels.errors import (
    ArgumentError,
    ConfigError,
    DeviceError,
    DtypeError,
    GradientError,
    OverlapError,
    ShapeError,
    UnknownDesignError,
)

SIZES = ("input_size", "weight_size")
SEVERAL_OPERANDS = [op for op in NAMES if op != "conv2d_bias"]


@st.composite
def wrong_calls(draw, op, mistake):
    """A valid call with exactly this mistake in it."""
    example = draw(CALLS[op])
    tensors, _ = example.build()
    call = Wrong(op, dict(zip(NAMES[op], tensors)) | example.keywords())
    if example.out is not None:
        plain = call.result()
        call.arguments["out"], _ = example.out.place(plain.shape, plain.dtype, plain.device)
    call.mistake = mistake.__name__
    call.error, call.names = mistake(draw, call)
    return call


# Operands
@mistake()
def not_a_tensor(draw, call):
    name = pick(draw, *(name for name in NAMES[call.op] if name not in SIZES))
    optional = name in ("c", "y", "bias")
    call.arguments[name] = pick(draw, [[1.0]], 3, "a", numpy.ones((2, 2), numpy.float32), *(() if optional else (None,)))
    return DtypeError, name


@mistake()
def rank(draw, call):
    name = pick(draw, *call.tensors())
    t = call.arguments[name]
    batched = call.op == "matmul" or (call.op == "gemv" and name != "y")
    longer = t[(None,) * (max(3, call.result().ndim) + 1)]  # than all that it could broadcast to
    call.arguments[name] = torch.tensor(1).to(t.dtype) if batched else longer
    return ShapeError, name


@mistake()
def dtype(draw, call):
    name = pick(draw, *call.tensors())
    call.arguments[name] = call.arguments[name].to(pick(draw, torch.int64, torch.int16, torch.complex64, torch.bool))  # no op's
    return DtypeError, name


@mistake(*SEVERAL_OPERANDS)
def dtype_mix(draw, call):
    name = pick(draw, *call.tensors()[1:])
    t = call.arguments[name]
    other = pick(draw, torch.float16, torch.bfloat16, torch.float32, torch.int8)
    assume(other != t.dtype)
    call.arguments[name] = t.to(other)
    return DtypeError, name


@mistake(*SEVERAL_OPERANDS)
def device_mix(draw, call):
    name = pick(draw, *call.tensors()[1:])
    call.arguments[name] = call.arguments[name].to("meta")
    return DeviceError, name


@mistake()
def sparse(draw, call):
    name = pick(draw, *call.tensors())
    call.arguments[name] = torch.sparse_coo_tensor(
        size=call.arguments[name].shape, dtype=call.arguments[name].dtype, check_invariants=True
    )
    return DtypeError, name


@mistake()
def gradient(draw, call):
    name = pick(draw, *call.tensors())
    assume(call.arguments[name].is_floating_point())
    call.arguments[name] = call.arguments[name].clone().requires_grad_()
    call.arguments["out"] = call.result()  # into which nothing is recorded
    return GradientError, name


@mistake("gemm", "gemv", "matmul")
def too_long(draw, call):
    """A size that a 32-bit loop counter cannot run to; expanded, so that it takes no memory."""
    name = NAMES[call.op][0]
    t = call.arguments[name]
    call.arguments[name] = t.new_zeros([1] * t.ndim).expand(*t.shape[:-1], 2**31)
    return ShapeError, name


@mistake("gemm", "gemv", "matmul")
def inner_size(draw, call):
    name = NAMES[call.op][1]
    t = call.arguments[name]
    inner = -1 if t.ndim == 1 or call.op == "gemv" else -2
    call.arguments[name] = t.new_zeros([size + (dim == inner % t.ndim) for dim, size in enumerate(t.shape)])
    return ShapeError, name


@mistake("matmul")
def batch(draw, call):
    a, b = call.arguments["a"], call.arguments["b"]
    assume(a.ndim > 1 and b.ndim > 1)
    call.arguments |= {"a": a.new_zeros(2, *a.shape[-2:]), "b": b.new_zeros(3, *b.shape[-2:])}
    return ShapeError, "b"


# alpha, beta, c
@mistake("gemm", "gemv", "matmul")
def not_a_number(draw, call):
    name = pick(draw, "alpha", "beta")
    call.arguments[name] = pick(draw, "1", 1j, True, "", torch.tensor(1.0), [1.0])
    return DtypeError, name


@mistake("gemm", "gemv", "matmul")
def no_addend(draw, call):
    name = ADDENDS[call.op]
    call.arguments[name] = None
    call.arguments["beta"] = pick(draw, 2, 1) if call.op == "matmul" else pick(draw, 0.5, 1, torch.nan, 1e-30)
    return ArgumentError, name


@mistake("gemm", "gemv")
def addend_of_another_size(draw, call):
    """Also with beta 0, where it would not be read."""
    name, shape = ADDENDS[call.op], list(call.result().shape)
    shape[pick(draw, *range(len(shape)))] += 2
    call.arguments[name] = torch.zeros(shape, dtype=call.result().dtype)
    return ShapeError, name


# design, config, precision, out_dtype
@mistake()
def unknown_design(draw, call):
    call.arguments["design"] = pick(draw, "quick", "", "NAIVE", 3)
    return UnknownDesignError, "design"


@mistake("gemm", "gemv", "conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias")
def unknown_config(draw, call):
    call.arguments["config"] = pick(draw, {"BLOCK_M": 77}, {"BLOCK": None}, 128, "fast", [("BLOCK_M", 16)])
    return ConfigError, "config"


@mistake("conv2d", "matmul")
def unknown_precision(draw, call):
    call.arguments["precision"] = pick(draw, "tf23", "fp4", "", 16, ["ieee"])
    return ArgumentError, "precision"


@mistake("matmul")
def unknown_accumulate(draw, call):
    call.arguments["accumulate"] = pick(draw, "fp8", "float32", 32, ["fp32"])
    return ArgumentError, "accumulate"


@mistake("matmul")
def unknown_activation(draw, call):
    call.arguments["activation"] = pick(draw, "tanh", "ReLU", 1, torch.relu)
    return ArgumentError, "activation"


@mistake("matmul")
def bias_of_another_size(draw, call):
    plain = call.result()
    columns = plain.shape[-1] if call.arguments["b"].ndim > 1 else 1
    call.arguments["bias"] = torch.zeros(columns + pick(draw, 1, 5), dtype=plain.dtype)
    return ShapeError, "bias"


@mistake("matmul")
def scale(draw, call):
    """A scale for operands that have none, or one of another type, size or device."""
    name, a, b = pick(draw, "scale_a", "scale_b"), call.arguments["a"], call.arguments["b"]
    rows, columns = a.shape[-2] if a.ndim > 1 else 1, b.shape[-1] if b.ndim > 1 else 1
    wrong = {
        ShapeError: torch.ones((rows + 2, 1) if name == "scale_a" else (1, columns + 2)),
        DtypeError: pick(draw, torch.ones((), dtype=torch.float64), 1.0),
        DeviceError: torch.ones((), device="meta"),
    }
    error = pick(draw, *wrong)
    call.arguments[name] = wrong[error]
    return error if a.dtype in FP8 else DtypeError, name


@mistake("matmul")
def unknown_out_dtype(draw, call):
    call.arguments["out_dtype"] = pick(draw, torch.int64, torch.complex64, "float32", float)
    return DtypeError, "out_dtype"


# out
@mistake()
def out_is_no_tensor(draw, call):
    call.arguments["out"] = pick(draw, 3, "out", [], numpy.ones(3))
    return DtypeError, "out"


@mistake()
def out_shape(draw, call):
    plain = call.result()
    grown = [plain.new_empty([size + (dim == d) for dim, size in enumerate(plain.shape)]) for d in range(plain.ndim)]
    call.arguments["out"] = pick(draw, plain[None], *grown)
    return ShapeError, "out"


@mistake()
def out_dtype(draw, call):
    plain = call.result()
    other = pick(draw, torch.float64, torch.float16, torch.int32, torch.float32)
    assume(other != plain.dtype)
    call.arguments["out"] = plain.to(other)
    return DtypeError, "out"


@mistake()
def out_kind(draw, call):
    plain = call.result()
    wrong = {
        DtypeError: torch.sparse_coo_tensor(size=plain.shape, dtype=plain.dtype, check_invariants=True),
        DeviceError: plain.to("meta"),
    } | ({GradientError: torch.empty_like(plain).requires_grad_()} if plain.is_floating_point() else {})
    error = pick(draw, *wrong)
    call.arguments["out"] = wrong[error]
    return error, "out"


@mistake()
def out_overlaps_itself(draw, call):
    plain = call.result()
    long = [dim for dim, size in enumerate(plain.shape) if size > 1]
    assume(long and plain.numel())
    strides = list(plain.stride())
    dim = pick(draw, *long)
    strides[dim] = 0 if len(long) == 1 else pick(draw, 0, strides[pick(draw, *(d for d in long if d != dim))])
    span = sum((size - 1) * stride for size, stride in zip(plain.shape, strides)) + 1
    call.arguments["out"] = torch.zeros(span, dtype=plain.dtype).as_strided(plain.shape, strides)
    return OverlapError, "out"


@mistake()
def out_overlaps_an_operand(draw, call):
    """Both in the same memory, shifted by less than their length, in either direction."""
    plain, name = call.result(), pick(draw, *call.tensors())
    operand = call.arguments[name]
    assume(name == ADDENDS.get(call.op) or call.arguments.get("alpha") != 0)  # at 0 the factors are not read
    assume(plain.numel() and operand.numel())
    memory = torch.zeros(operand.nbytes + plain.nbytes + 8, dtype=torch.uint8)
    first, second = pick(draw, (operand, plain), (plain, operand))
    size = max(first.dtype.itemsize, second.dtype.itemsize)
    shift = pick(draw, *{0, (first.nbytes - 1) // 2 // size * size, (first.nbytes - 1) // size * size})
    assume(shift or name != ADDENDS.get(call.op) or operand.numel() != plain.numel())  # it may be the addend itself
    views = {id(t): memory[at : at + t.nbytes].view(t.dtype).view(t.shape) for t, at in ((first, 0), (second, shift))}
    views[id(operand)].copy_(operand)
    call.arguments[name], call.arguments["out"] = views[id(operand)], views[id(plain)]
    return OverlapError, "out"


# Geometry of a convolution
@mistake("conv2d_input", "conv2d_weight")
def size_argument(draw, call):
    name = next(name for name in NAMES[call.op] if name in SIZES)
    size = call.arguments[name]
    call.arguments[name] = pick(
        draw, 3, None, "abcd", size[:1], (*size, 1, 1), (-1, *size[1:]), (1.5, *size[1:]), (True, *size[1:])
    )
    return ShapeError, name


@mistake("conv2d_input", "conv2d_weight")
def gradient_of_another_size(draw, call):
    grad = call.arguments["grad_output"]
    longer = pick(draw, *range(grad.ndim))
    call.arguments["grad_output"] = grad.new_zeros([size + (dim == longer) for dim, size in enumerate(grad.shape)])
    return ShapeError, "grad_output"


@mistake("conv2d", "conv2d_input", "conv2d_weight")
def step(draw, call):
    name = pick(draw, "stride", "dilation")
    call.arguments[name] = pick(draw, 0, -1, 1.5, (1, 0), (1, 1, 1), (), "1", None, True, [True, 1], torch.tensor(1.0))
    return ArgumentError, name


@mistake("conv2d", "conv2d_input", "conv2d_weight")
def padding(draw, call):
    call.arguments["padding"] = pick(draw, -1, (0, -1), 0.5, (0, 0, 0), "full", "SAME", "", None, True)
    return ArgumentError, "padding"


@mistake("conv2d", "conv2d_input", "conv2d_weight")
def same_with_a_stride(draw, call):
    call.arguments |= {"padding": "same", "stride": pick(draw, 2, (1, 2), [2])}
    return ArgumentError, "padding"


@mistake("conv2d")
def groups(draw, call):
    channels = call.arguments["input"].shape[-3]
    call.arguments["groups"] = pick(draw, 0, -1, 1.5, True, "1", None, channels + 1)
    return ArgumentError, "groups"


@mistake("conv2d")
def weight(draw, call):
    """Other channels than the input's, no taps, or taps that reach past the padded input."""
    k, c, r, s = call.arguments["weight"].shape
    h, w = call.arguments["input"].shape[-2:]
    shapes = [(k, c + 1, r, s), (k, c, 0, s), (k, c, r, 0)]
    if call.arguments["padding"] != "same":  # which grows with the filter
        shapes += [(k, c, h + 9, s), (k, c, r, w + 9)]  # the padding is 4 at most
    call.arguments["weight"] = call.arguments["weight"].new_zeros(pick(draw, *shapes))
    return ShapeError, "weight"


@mistake("conv2d")
def bias(draw, call):
    weight = call.arguments["weight"]
    call.arguments["bias"] = weight.new_zeros(weight.shape[0] + pick(draw, 1, 5))
    return ShapeError, "bias"
