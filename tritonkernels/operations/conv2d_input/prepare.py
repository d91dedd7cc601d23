"""Checks conv2d_input's arguments and makes its Call."""

import torch

from ... import validate
from ...layouts import is_channels_last
from ...operation import Call
from ...problem import LARGEST_TILE, Conv2dInputProblem, bound_idle_strides, is_known, needs_wide_offsets
from ..conv2d.geometry import geometry
from ..conv2d.gradients import batched, check_grad_output, size_of
from ..conv2d.precision import resolved
from ..conv2d.prepare import DTYPES


def prepare(
    input_size,
    weight,
    grad_output,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    *,
    bias=None,
    precision=None,
    memory_format=None,
    out=None,
):
    """Validate conv2d_input's arguments into a Call whose one part is (grad_output, weight, bias or None, out), batched.

    memory_format as in conv2d's.
    """
    input_size = size_of("input_size", input_size, ranks=(3, 4))
    weight = validate.tensor("weight", weight, dtypes=DTYPES, ranks=(4,))
    grad_output = validate.tensor("grad_output", grad_output, dtypes=DTYPES, ranks=(len(input_size),), like=("weight", weight))
    sizes = geometry(input_size, weight.shape, stride, padding, dilation, groups, input="input_size")
    check_grad_output(grad_output, sizes, unbatched=len(input_size) == 3)
    if bias is not None:
        bias = validate.tensor("bias", bias, dtypes=DTYPES, ranks=(1,), like=("weight", weight))
        validate.length("bias", bias, sizes["c"], "one value per channel of the result")
    precision = resolved(precision, weight.dtype)

    channels_last = len(input_size) == 4 and any(is_channels_last(t) for t in (weight, grad_output))
    if memory_format is None:
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
    operands = {"weight": weight, "grad_output": grad_output, "bias": bias}
    out = validate.result(out, input_size, weight.dtype, weight.device, memory_format, **operands)
    grad_output, batched_out = batched(grad_output), batched(out)
    step_h, step_w = sizes["stride"]
    channels = sizes["c"] + LARGEST_TILE  # a tile of them past the end
    flipped = channels * weight.shape[0] // sizes["groups"] * sizes["r"] * sizes["s"]
    problem = Conv2dInputProblem(
        dtype=weight.dtype,
        out_dtype=weight.dtype,
        precision=precision,
        wide=(is_known(flipped) and flipped >= 2**31)
        or needs_wide_offsets(weight, grad_output, bias, batched_out, bound_idle_strides(batched_out)[..., ::step_h, ::step_w]),
        has_bias=bias is not None,
        channels_last=channels_last,
        **sizes,
    )
    return Call(problem, ((grad_output, weight, bias, batched_out),), out)
