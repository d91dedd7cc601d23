"""Functions that are calls of an operation on views of their operands: transposed convolutions, and those of signals.

No data is moved, so designs, gradients, torch.compile and vmap are those of conv2d and conv2d_input. A signal (N, C, L) is an
image of one column, (N, C, L, 1): designs keep runs of outputs down a column in registers, where the inputs of neighbouring
outputs overlap, and products over pixels do not see the difference. volumes.py has conv3d.
"""

import sys
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, NamedTuple

import torch
from torch.overrides import handle_torch_function, has_torch_function

from .. import validate
from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..problem import differ, holds
from .matmul.split import unpacked_call
from .volumes import conv3d

LEAST = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}  # which is also what changes nothing


class View(NamedTuple):
    """A function as one of an operation.

    operation  the operation's name
    given      a user's arguments -> (the operation's by name, in the order of its function, its result -> the user's)
    words      {what the operation's errors say: what the user's call has}
    """

    operation: str
    given: Callable[..., tuple[dict[str, Any], Callable[[torch.Tensor], torch.Tensor]]]
    words: Mapping[str, str]


def call(library, name, given, precision, out, design, config):
    """The user function `name` of the library's package; `given` are its first arguments, up to the keywords."""
    traced = [operand for operand in given[:3] if not isinstance(operand, (torch.Tensor, NoneType))]
    if has_torch_function(traced):  # torch.fx's, of which no sizes are known
        function = getattr(sys.modules[library.package], name)
        options = {"precision": precision, "out": out, "design": design, "config": config}
        return handle_torch_function(function, traced, *given, **options)
    view = VIEWS[name]
    given, restored = view.given(*given, precision=precision, out=out)
    try:
        result = library.operators[view.operation](design, config, **given)
    except ArgumentError as error:
        raise error.reworded(view.words) from None
    return restored(result) if out is None else out


def viewed(op, args, kwargs):
    """The call of an operation, or of a view as one of its operation."""
    if op == "matmul":
        return op, *unpacked_call(args, kwargs)
    if op not in VIEWS:
        return op, args, kwargs
    given = [*VIEWS[op].given(*args, **kwargs)[0].items()]
    return VIEWS[op].operation, tuple(value for _, value in given[:3]), dict(given[3:])  # operands first, as bounds take them


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, precision=None, out=None):
    input, weight, out = _columns(input, weight, out)
    given = {
        "input": input,
        "weight": weight,
        "bias": bias,
        "stride": _down("stride", stride),
        "padding": padding if isinstance(padding, str) else _down("padding", padding),
        "dilation": _down("dilation", dilation),
        "groups": groups,
        "precision": precision,
        "activation": None,
        "residual": None,
        "out": out,
    }
    return given, _signal


def conv_transpose1d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, *, precision=None, out=None
):
    steps = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    steps = {name: _down(name, value) for name, value in steps.items()}
    return _gradient(*_columns(input, weight, out), bias, groups, precision, **steps), _signal


def conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, *, precision=None, out=None
):
    validate.viewable("input", input, (3, 4))
    validate.viewable("weight", weight, (4,))
    steps = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    steps = {name: validate.pair(name, value, LEAST[name]) for name, value in steps.items()}
    return _gradient(input, weight, out, bias, groups, precision, **steps), lambda result: result


def _gradient(input, weight, out, bias, groups, precision, stride, padding, output_padding, dilation):
    """The gradient of a convolution with respect to its input, where `input` is the gradient of its result."""
    *images, c, h, w = input.shape
    if differ(weight.shape[0], c):
        allowed = f"(C, K / groups, R, S) with C = {c}, the input's channels"
        raise ShapeError("weight", f"shape {tuple(weight.shape)}", allowed, "Is it the weight of a convolution? Swap C and K.")
    axes = zip((h, w), weight.shape[2:], stride, padding, output_padding, dilation)
    k = weight.shape[1] * validate.groups(groups)
    return {
        "input_size": (*images, k, *(_transposed(*axis) for axis in axes)),
        "weight": weight,
        "grad_output": input,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "bias": bias,
        "precision": precision,
        "out": out,
    }


def _transposed(size, taps, step, padding, more, apart):
    """The size of the result along an axis."""
    if more >= max(step, apart):
        allowed = f"less than the stride or the dilation, {step} and {apart}"
        raise ArgumentError("output_padding", more, allowed, "Pass output_padding=0, or a larger stride.")
    if more >= step:
        reason = f"an output_padding of {more} with a stride of {step} adds outputs that no input of the convolution has"
        raise UnsupportedError(
            reason, remedy="Pass less than the stride, or call the function of this name in torch.nn.functional."
        )
    result = (size - 1) * step - 2 * padding + apart * (taps - 1) + more + 1
    if holds(size < 1) or holds(result < 1):
        allowed = "sizes with at least one output and input"
        raise ShapeError("input", f"a size of {size}, of which {result} outputs are made", allowed, "Pass less padding.")
    return result


def _columns(input, weight, out):
    """Signals and filters as images of one column."""
    validate.viewable("input", input, (2, 3))
    validate.viewable("weight", weight, (3,))
    if out is not None:
        out = validate.viewable("out", out, (2, 3)).unsqueeze(-1)
    return input.unsqueeze(-1), weight.unsqueeze(-1), out


def _down(name, value):
    """Steps of a signal as those of a column."""
    return (*validate.per_direction(name, value, LEAST[name], 1), LEAST[name])


def _signal(result):
    return result.squeeze(-1)


OF_GRADIENT = {
    "the input's": "the result's",
    "output channels": "input channels",
    "grad_output": "input",
    "input_size": "input",
}
VIEWS = {
    "conv1d": View("conv2d", conv1d, {}),
    "conv3d": View("conv2d", conv3d, {}),
    "conv_transpose1d": View("conv2d_input", conv_transpose1d, OF_GRADIENT),
    "conv_transpose2d": View("conv2d_input", conv_transpose2d, OF_GRADIENT),
}
