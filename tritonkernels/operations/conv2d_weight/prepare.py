"""Checks conv2d_weight's arguments and makes its Call."""

import torch

from ... import validate
from ...layouts import is_channels_last
from ...operation import Call
from ...problem import Conv2dWeightProblem, needs_wide_offsets
from ..conv2d.geometry import geometry
from ..conv2d.gradients import batched, check_grad_output, size_of
from ..conv2d.precision import resolved
from ..conv2d.prepare import DTYPES
from .space import are_wide


def prepare(
    input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1, *, precision=None, memory_format=None, out=None
):
    """Validate conv2d_weight's arguments into a Call whose one part is (input, grad_output, out), images batched.

    memory_format as in conv2d's.
    """
    input = validate.tensor("input", input, dtypes=DTYPES, ranks=(3, 4))
    weight_size = size_of("weight_size", weight_size, ranks=(4,))
    grad_output = validate.tensor("grad_output", grad_output, dtypes=DTYPES, ranks=(input.ndim,), like=("input", input))
    sizes = geometry(input.shape, weight_size, stride, padding, dilation, groups, weight="weight_size")
    check_grad_output(grad_output, sizes, unbatched=input.ndim == 3)
    precision = resolved(precision, input.dtype)

    channels_last = any(is_channels_last(t) for t in (input, grad_output))
    if memory_format is None:
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
    out = validate.result(out, weight_size, input.dtype, input.device, memory_format, input=input, grad_output=grad_output)
    input, grad_output = batched(input), batched(grad_output)
    positions = sizes["n"] * sizes["p"] * sizes["q"]  # more than the elements of an expanded tensor
    problem = Conv2dWeightProblem(
        dtype=input.dtype,
        out_dtype=input.dtype,
        precision=precision,
        wide=are_wide(positions) or needs_wide_offsets(input, grad_output, out),
        has_bias=False,
        channels_last=channels_last,
        **sizes,
    )
    return Call(problem, ((input, grad_output, out),), out)
