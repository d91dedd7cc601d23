"""The gradient of conv2d with respect to its bias: the sum of each channel over images and positions."""

from torch import Tensor

from ..annotations import Config
from ..design import Design
from ..launch import LIBRARY
from ..operation import Operation, Rung
from ..operations.conv2d.rules import BIAS_RULES
from ..operations.conv2d_bias.prepare import prepare
from ..torch_ops import Operator

LADDER = (
    Rung(
        "channel_sums",
        "channels and positions over blocks, partial sums in registers, added up in a fixed order",
        "conv2d_bias: a sum per channel",
    ),
)


def conv2d_bias(
    grad_output: Tensor,
    *,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """The gradient of conv2d with respect to its bias: grad_output.sum((0, 2, 3)), in the same order every time.

    grad_output  (N, K, P, Q) or (K, P, Q), any strides (expanded ones too): float32, float16, bfloat16, all three with sums in
                 fp32, or float64
    out          (K,) of grad_output's dtype to write into; must not overlap it. Default: a new tensor
    design       one of designs("conv2d_bias"), or its name; default: the last
    config       one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Error, elementwise: gamma(N P Q + 4) * sum |grad_output| plus the one rounding of the result (`numerics.error_bound`).
    Differentiable, as conv2d. Raises as `gemm` does, before anything is launched.
    """
    return OPERATOR(design, config, grad_output=grad_output, out=out)


CONV2D_BIAS = Operation("conv2d_bias", prepare, BIAS_RULES, LADDER)
OPERATOR = Operator(LIBRARY, CONV2D_BIAS)
