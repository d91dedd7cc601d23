"""Checks of arguments that all operations share. Each raises a typed error that names the argument; none reads the data."""

import difflib
import itertools
import math
import numbers

import numpy
import torch

from .errors import ArgumentError, DeviceError, DtypeError, GradientError, OverlapError, ShapeError
from .problem import FLOAT_PRECISION, address, differ, dtype_name, holds, is_known

LARGEST_SIZE = 2**31 - 2**16  # loop counters are 32-bit and run up to a tile past the end
NEW_OUT = "Pass such a tensor, or no out: then the result is a new one."


def is_too_large(size):
    return is_known(size) and size > LARGEST_SIZE


def tensor(argument, value, *, dtypes, ranks, like=None, elsewhere=None):
    """A dense tensor of an allowed dtype and rank, with the device and dtype of `like` (a pair: name, tensor).

    elsewhere  {a dtype or rank that is not allowed: the operation to call for it}
    """
    elsewhere = elsewhere or {}
    if not isinstance(value, torch.Tensor):
        raise no_tensor(argument, value)
    dense(argument, value)
    if value.dtype not in dtypes:
        convert = f"Convert it with .to({torch.float32 if torch.float32 in dtypes else dtypes[0]})."
        remedy = f"For {dtype_name(value.dtype)}, call {elsewhere[value.dtype]}." if value.dtype in elsewhere else convert
        raise DtypeError(argument, value.dtype, ", ".join(map(str, dtypes)), remedy)
    if value.ndim not in ranks:
        allowed = f"rank {ranks[0]} to {ranks[-1]}" if len(ranks) > 2 else "rank " + " or ".join(map(str, ranks))
        reshape = "Add dimensions with .unsqueeze()." if value.ndim < ranks[0] else "Flatten or index some dimensions."
        remedy = f"For rank {value.ndim}, call {elsewhere[value.ndim]}." if value.ndim in elsewhere else reshape
        raise ShapeError(argument, f"rank {value.ndim}, shape {tuple(value.shape)}", allowed, remedy)
    if any(map(is_too_large, value.shape)):
        raise ShapeError(argument, f"shape {tuple(value.shape)}", f"sizes up to {LARGEST_SIZE}", "Split the call.")
    if like is not None:
        name, other = like
        same_device(argument, value, name, other)
        if value.dtype != other.dtype:
            raise DtypeError(argument, value.dtype, f"{other.dtype}, the dtype of {name}", f"Call .to({name}.dtype).")
    return value.resolve_neg()  # kernels would read a lazily negated view (a conjugate's imaginary part) with the wrong sign


def viewable(argument, value, ranks):
    """A tensor of an allowed rank, of which views can be taken; the operation that gets these checks all else."""
    if not (isinstance(value, torch.Tensor) and value.ndim in ranks and value.layout == torch.strided and not value.is_nested):
        tensor(argument, value, dtypes=tuple(FLOAT_PRECISION), ranks=ranks)
    return value


def dense(argument, value):
    """Refuse a tensor that is not numbers at strides."""
    if value.is_quantized:
        got, how = "a quantized tensor", "Call .dequantize()."
    elif value.is_nested:
        got, how = "a nested tensor", "Call once for each of its .unbind(), or pad it with torch.nested.to_padded_tensor()."
    elif value.layout != torch.strided:
        got, how = f"a tensor of layout {value.layout}", "Call .to_dense()."
    else:
        return
    raise DtypeError(argument, got, "a dense (strided) tensor", NEW_OUT if argument == "out" else how)


def no_tensor(argument, value):
    return DtypeError(argument, type(value).__name__, "a torch.Tensor", f"Pass torch.as_tensor({argument}).")


def same_device(argument, value, name, other):
    if value.device != other.device:
        raise DeviceError(argument, value.device, f"{other.device}, the device of {name}", f"Call .to({name}.device).")


def number(argument, value):
    """A real number, as a float (an int would make Triton compile another kernel per value)."""
    if isinstance(value, torch.SymFloat | torch.SymInt):  # in torch.compile, where only data decides it
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DtypeError(argument, type(value).__name__, "a real number", "Pass a float; a tensor's is .item().")
    try:
        return float(value)
    except OverflowError:
        raise ArgumentError(argument, shown(value), "a number within float64's range", "Scale the operands.") from None


def shown(value):
    """The text of a value, even of an int with too many digits for Python to print."""
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def seconds(argument, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < math.inf:
        raise ArgumentError(argument, repr(value), "a positive number of seconds", f"Pass {argument}=60 for a minute.")


def inner(left, left_size, right, right_size):
    if differ(left_size, right_size):
        raise ShapeError(
            right, f"inner size {right_size}", f"{left_size}, the inner size of {left}", "Is one transposed? Pass its .mT."
        )


def size_of_packed(argument, size, per_byte):
    """How many elements `size` bytes hold; loop counters over them are 32-bit too."""
    if is_too_large(size * per_byte):
        raise ShapeError(
            argument, f"{size} bytes of {per_byte} elements each", f"up to {LARGEST_SIZE} elements", "Split the call."
        )
    return size * per_byte


def length(argument, value, expected, meaning):
    if differ(value.shape[0], expected):
        raise ShapeError(argument, tuple(value.shape), f"({expected},), {meaning}", f"Pass {expected} values.")


def beta_of(beta, addend):
    """The caller's beta; by default 1 with an addend, as in torch.addmm, and 0 without."""
    return float(addend is not None) if beta is None else beta


def addend(argument, value, beta, shape, like):
    """The C of beta * C, broadcast to the result's shape; None if beta is 0, so that it is never read."""
    if value is None:
        if not holds(beta == 0):
            raise ArgumentError(argument, "None", f"a tensor, as beta is {beta}", f"Pass {argument}, or beta=0.")
        return None
    value = tensor(argument, value, dtypes=(like[1].dtype,), ranks=range(len(shape) + 1), like=like)
    value = expanded(argument, value, shape, f"Reshape it: {argument}[:, None] is a column.")
    return None if holds(beta == 0) else value


def expanded(argument, value, shape, remedy):
    """The tensor, broadcast to the shape."""
    try:
        return value.expand(shape)
    except RuntimeError:
        allowed = f"{tuple(shape)}, or a shape that broadcasts to it"
        raise ShapeError(argument, tuple(value.shape), allowed, remedy) from None


def result(out, shape, dtype, device, memory_format=torch.contiguous_format, addend=None, **inputs):
    """The tensor to write: a new one, or `out` after checking its shape, dtype, device and overlap with the inputs.

    addend  the name of the input that it may be: designs read an element of that before they write it
    """
    if out is None:
        return torch.empty(shape, dtype=dtype, device=device, memory_format=memory_format)
    if not isinstance(out, torch.Tensor):
        raise DtypeError("out", type(out).__name__, "a torch.Tensor or None", NEW_OUT)
    dense("out", out)
    if out.dtype != dtype:
        raise DtypeError("out", out.dtype, str(dtype), NEW_OUT)
    if out.is_neg():
        raise DtypeError("out", "a lazily negated tensor", "a tensor that is not", NEW_OUT)
    if out.device != device:
        raise DeviceError("out", out.device, f"{device}, the device of the inputs", NEW_OUT)
    if out.ndim != len(shape) or any(map(differ, out.shape, shape)):
        raise ShapeError("out", tuple(out.shape), tuple(shape), f"out is never resized. {NEW_OUT}")
    if out.requires_grad and torch.is_grad_enabled():
        raise GradientError("out", "requires_grad=True", "a tensor that does not require a gradient", "Pass out.detach().")
    if _overlaps_itself(out):
        allowed = "a tensor whose elements do not overlap"
        raise OverlapError("out", "elements that share memory (an expanded tensor?)", allowed, NEW_OUT)
    for argument, value in inputs.items():
        if value is None or (argument == addend and _are_same(out, value)):
            continue
        if _share_memory(out, value):
            allowed = "memory that no input uses" + (f", or {addend} itself" if addend else "")
            raise OverlapError("out", f"memory shared with {argument}", allowed, "Pass another out, or a clone.")
    return out


def choice(argument, value, choices, known=()):
    """The value, or the first of the choices for None. `known` are names that mean something elsewhere: no misspelt choices."""
    if value is None:
        return choices[0]
    if value not in choices:
        raise out_of_choices(argument, value, choices, known)
    return value


def out_of_choices(argument, value, choices, known=()):
    remedy = did_you_mean(value, choices, known) or f"Pass one of these{', or leave it out' if len(choices) == 1 else ''}."
    return ArgumentError(argument, repr(value), ", ".join(map(repr, choices)), remedy)


def did_you_mean(value, choices, known=()):
    """A question that ends an error, if what is spelled most nearly as the value is one of the choices; else ""."""
    names = dict.fromkeys(name for name in (*choices, *known) if isinstance(name, str))
    near = difflib.get_close_matches(str(value), names, 1)
    return f"Did you mean {near[0]!r}?" if near and near[0] in choices else ""


def on_backend(argument, value, device_type, backend):
    if value.device.type != device_type:
        remedy = f"Move it with .to({device_type!r}), or choose the backend with TRITONKERNELS_BACKEND before the first call."
        raise DeviceError(
            argument, f"a tensor on {value.device}", f"{device_type}, the device of the {backend} backend", remedy
        )


def _are_same(a, b):
    """Whether two tensors of one shape have their elements at the same addresses."""
    steps = zip(a.stride(), b.stride(), a.shape)
    return address(a) == address(b) and all(one == other for one, other, size in steps if size > 1)


def _overlaps_itself(t):
    """False only if no two elements can overlap: each stride exceeds the span of all smaller ones."""
    if not all(map(is_known, (*t.shape, *t.stride()))):
        return False  # the call itself asks again, with numbers
    span = 0
    for stride, size in sorted((stride, size) for stride, size in zip(t.stride(), t.shape) if size > 1):
        if stride <= span:
            return True
        span += (size - 1) * stride
    return False


def _share_memory(a, b):
    """Exact if numpy's solver finishes in reasonable time, else True if the address ranges overlap."""
    try:
        return numpy.shares_memory(_Addresses.array(a), _Addresses.array(b), max_work=100_000)
    except (numpy.exceptions.TooHardError, OverflowError):
        return True


class _Addresses:
    """A tensor's addresses as a numpy array that is never read: works for any device and dtype."""

    def __init__(self, t):
        self.keeps = t
        size = t.element_size()
        self.__array_interface__ = {
            "version": 3,
            "data": (address(t), True),
            "typestr": f"|V{size}",
            "shape": tuple(t.shape),
            "strides": tuple(stride * size if length > 1 else size for length, stride in zip(t.shape, t.stride())),
        }

    @classmethod
    def array(cls, t):
        return numpy.asarray(cls(t)) if t.numel() and not t.is_meta and address(t) else numpy.empty(0, numpy.uint8)


def groups(value):
    """The number of groups, as an int."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 1 <= value <= LARGEST_SIZE:
        raise ArgumentError(
            "groups", shown(value), f"an int, at least 1 and at most {LARGEST_SIZE}", "Pass groups=1 for no groups."
        )
    return int(value)


def pair(argument, value, least):
    """An int or a pair of ints, each from `least` to LARGEST_SIZE, as a pair."""
    return per_direction(argument, value, least, 2)


def per_direction(argument, value, least, count):
    """An int, or one for each of `count` directions, each from `least` to LARGEST_SIZE, as a tuple."""
    if type(value) is int and least <= value <= LARGEST_SIZE:
        return (value,) * count
    values = (value,) if isinstance(value, numbers.Integral) else value
    ok = isinstance(values, (tuple, list)) and len(values) in (1, count)
    ok = ok and all(isinstance(v, numbers.Integral) and not isinstance(v, bool) and v >= least for v in values)
    if not ok or isinstance(value, bool) or any(map(is_too_large, values)):
        several, remedy = {
            1: ("a tuple of one", "Pass an int."),
            2: ("a pair of ints", "Pass one for both directions."),
            3: ("three ints", "Pass one for all directions."),
        }[count]
        raise ArgumentError(
            argument, shown(value), f"an int or {several}, each at least {least} and at most {LARGEST_SIZE}", remedy
        )
    return tuple(map(int, values)) * (count // len(values))


def broadcast_shape(left, left_shape, right, right_shape):
    pairs = list(itertools.zip_longest(left_shape[::-1], right_shape[::-1], fillvalue=1))
    if all(is_known(a) and is_known(b) and (a == b or 1 in (a, b)) for a, b in pairs):  # torch imports sympy for it
        return torch.Size(b if a == 1 else a for a, b in pairs)[::-1]
    try:
        return torch.broadcast_shapes(left_shape, right_shape)
    except RuntimeError:
        allowed = f"a batch that broadcasts with {tuple(left_shape)}, the batch of {left}"
        raise ShapeError(right, f"batch {tuple(right_shape)}", allowed, "Give both one batch, or a size of 1.") from None


def allocatable(shape, argument="the result"):
    """The shape of a result, if it can be allocated: an error here is clearer than one from the allocator."""
    elements = math.prod(size or 1 if is_known(size) else size for size in shape)  # an empty one's strides have no zeros
    if (is_known(elements) and elements >= 2**60) or any(map(is_too_large, shape)):
        allowed = f"sizes up to {LARGEST_SIZE}, less than 2^60 elements"
        raise ShapeError(argument, shown(tuple(shape)), allowed, "Split the call.")
    return shape
