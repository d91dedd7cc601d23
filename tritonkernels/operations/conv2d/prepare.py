"""Checks conv2d's arguments and makes its Call."""

import torch

from ... import validate
from ...errors import ShapeError
from ...layouts import is_channels_last
from ...numerics import ACTIVATIONS
from ...operation import Call
from ...problem import FLOAT_PRECISION, Conv2dProblem, differ, needs_wide_offsets
from .geometry import geometry
from .precision import resolved

DTYPES = tuple(FLOAT_PRECISION)  # float16, bfloat16, float32, float64


def prepare(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    *,
    precision=None,
    activation=None,
    residual=None,
    memory_format=None,
    out=None,
):
    """Validate conv2d's arguments into a Call whose one part is (input, weight, bias or None, out), batched; with a residual it
    is (..., out, residual).

    memory_format is that of a new result, by default channels_last if an operand's is.
    """
    input = validate.tensor("input", input, dtypes=DTYPES, ranks=(3, 4))
    weight = validate.tensor("weight", weight, dtypes=DTYPES, ranks=(4,), like=("input", input))
    precision = resolved(precision, input.dtype)
    sizes = geometry(input.shape, weight.shape, stride, padding, dilation, groups)
    k, p, q = (sizes[name] for name in "kpq")
    if bias is not None:
        bias = validate.tensor("bias", bias, dtypes=DTYPES, ranks=(1,), like=("input", input))
        if differ(bias.shape[0], k):
            raise ShapeError("bias", tuple(bias.shape), f"({k},), one value per output channel of weight", f"Pass {k} values.")

    if activation not in (None, *ACTIVATIONS):
        raise validate.out_of_choices("activation", activation, (None, *ACTIVATIONS))

    batched = input if input.ndim == 4 else input[None]
    channels_last = input.ndim == 4 and any(is_channels_last(t) for t in (input, weight))
    shape = validate.allocatable((*input.shape[:-3], k, p, q))
    if residual is not None:
        residual = validate.tensor("residual", residual, dtypes=DTYPES, ranks=(len(shape),), like=("input", input))
        if any(map(differ, residual.shape, shape)):
            allowed = f"{tuple(shape)}, the result's shape"
            raise ShapeError("residual", tuple(residual.shape), allowed, "Call .expand() to repeat elements.")
    if memory_format is None:
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
    inputs = {"input": input, "weight": weight, "bias": bias, "residual": residual}
    out = validate.result(out, shape, input.dtype, input.device, memory_format, addend="residual", **inputs)
    batched_out, added = (t if t is None or t.ndim == 4 else t[None] for t in (out, residual))
    problem = Conv2dProblem(
        dtype=input.dtype,
        out_dtype=input.dtype,
        precision=precision,
        wide=needs_wide_offsets(batched, weight, bias, batched_out, added),
        has_bias=bias is not None,
        channels_last=channels_last,
        activation=activation,
        residual=residual is not None,
        **sizes,
    )
    part = batched, weight, bias, batched_out
    return Call(problem, (part if added is None else (*part, added),), out)
