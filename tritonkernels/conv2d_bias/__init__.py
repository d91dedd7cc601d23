"""The gradient of conv2d with respect to its bias: the sum of each channel over images and positions."""

from .. import validate
from ..conv2d import DTYPES
from ..conv2d.parts.autograd import differentiable
from ..conv2d.parts.geometry import is_channels_last
from ..conv2d.parts.gradients import batched
from ..launch import LIBRARY
from ..operation import Call, Operation, Rung
from ..problem import FLOAT_PRECISION, Conv2dBiasProblem, needs_wide_offsets

LADDER = (
    Rung(
        "channel_sums",
        "channels and positions over blocks, partial sums in registers, added up in a fixed order",
        "conv2d_bias: a sum per channel",
    ),
)


def conv2d_bias(grad_output, *, out=None, design=None, config=None):
    """The gradient of conv2d with respect to its bias: grad_output.sum((0, 2, 3)), in the same order every time.

    grad_output  (N, K, P, Q) or (K, P, Q), any strides (expanded ones too): float32, float16, bfloat16, all three with sums in
                 fp32, or float64
    out          (K,) of grad_output's dtype to write into; must not overlap it. Default: a new tensor
    design       a name from designs("conv2d_bias"); default: the last
    config       one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Error, elementwise: gamma(N P Q + 4) * sum |grad_output| plus the one rounding of the result (`numerics.error_bound`).
    Differentiable, as conv2d. Raises as `gemm` does, before anything is launched.
    """
    return differentiable(LIBRARY, CONV2D_BIAS, design, config, grad_output=grad_output, out=out)


def prepare(grad_output, *, out=None):
    """Validate conv2d_bias's arguments into a Call whose one part is (grad_output, out), batched."""
    grad_output = validate.tensor("grad_output", grad_output, dtypes=DTYPES, ranks=(3, 4))
    if out is not None:
        validate.no_gradient("conv2d_bias into out", grad_output=grad_output)
    channels_last = is_channels_last(grad_output)
    dtype, channels = grad_output.dtype, grad_output.shape[-3]
    out = validate.result(out, (channels,), dtype, grad_output.device, grad_output=grad_output)
    grad_output = batched(grad_output)
    n, k, p, q = grad_output.shape
    problem = Conv2dBiasProblem(
        dtype=dtype,
        out_dtype=dtype,
        precision=FLOAT_PRECISION[dtype],
        wide=n * p * q > validate.LARGEST_SIZE or needs_wide_offsets(grad_output, out),
        n=n,
        k=k,
        p=p,
        q=q,
        channels_last=channels_last,
    )
    return Call(problem, ((grad_output, out),), out)


CONV2D_BIAS = Operation("conv2d_bias", prepare, LADDER)
LIBRARY.serve(CONV2D_BIAS)
