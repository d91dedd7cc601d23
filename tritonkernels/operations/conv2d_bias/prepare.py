"""Checks conv2d_bias's arguments and makes its Call."""

from ... import validate
from ...layouts import is_channels_last
from ...operation import Call
from ...problem import FLOAT_PRECISION, Conv2dBiasProblem, needs_wide_offsets
from ..conv2d.gradients import batched
from ..conv2d.prepare import DTYPES
from ..conv2d_weight.space import are_wide


def prepare(grad_output, *, out=None):
    """Validate conv2d_bias's arguments into a Call whose one part is (grad_output, out), batched."""
    grad_output = validate.tensor("grad_output", grad_output, dtypes=DTYPES, ranks=(3, 4))
    channels_last = is_channels_last(grad_output)
    dtype, channels = grad_output.dtype, grad_output.shape[-3]
    out = validate.result(out, (channels,), dtype, grad_output.device, grad_output=grad_output)
    grad_output = batched(grad_output)
    n, k, p, q = grad_output.shape
    problem = Conv2dBiasProblem(
        dtype=dtype,
        out_dtype=dtype,
        precision=FLOAT_PRECISION[dtype],
        wide=are_wide(n * p * q) or needs_wide_offsets(grad_output, out),
        n=n,
        k=k,
        p=p,
        q=q,
        channels_last=channels_last,
    )
    return Call(problem, ((grad_output, out),), out)
