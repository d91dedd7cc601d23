"""The gradient of conv2d with respect to its weight: a reduction over all positions of the output."""

from torch import Tensor

from ..annotations import Config, Conv2dPrecision, Padding, Pair, Size
from ..conv2d import unfold
from ..design import Design
from ..launch import LIBRARY
from ..operation import Operation, Rung
from ..operations.conv2d.as_matmul import Arrange
from ..operations.conv2d.rules import WEIGHT_RULES
from ..operations.conv2d_weight.as_matmul import TO_MATMUL
from ..operations.conv2d_weight.prepare import prepare
from ..torch_ops import Operator

LADDER = (
    Rung(
        "naive",
        "a thread per element of the weight, operands straight from the caches",
        "conv2d_weight: what the others are measured by",
        kind="lesson",
    ),
    Rung(
        "depthwise",
        "for one input channel a group: a thread has all sums of a filter, which each input that it loads adds to",
        "conv2d_weight: a filter's sums in registers",
    ),
    Rung(
        "implicit_gemm",
        "a tile of the weight per block, positions split over blocks",
        "conv2d_weight: a reduction over N, P and Q",
    ),
    Rung(
        "warp_specialized",
        "warps that copy boxes of positions and channels, and warpgroups that multiply them by wgmma; SMs share the positions",
        "CUTLASS's implicit GEMM of sm_90, weight gradient",
    ),
)


def conv2d_weight(
    input: Tensor,
    weight_size: Size,
    grad_output: Tensor,
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    *,
    precision: Conv2dPrecision | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """The gradient of conv2d(input, weight, ...) with respect to its weight, as torch.nn.grad.conv2d_weight.

    input        (N, C, H, W) or (C, H, W), any strides: float32, float16, bfloat16, all three with sums in fp32, or float64
    weight_size  of the weight, (K, C / groups, R, S): a tuple, a list or a torch.Size
    grad_output  (N, K, P, Q) or (K, P, Q) of input's dtype, any strides (expanded ones too): the gradient of the result
    stride, padding, dilation, groups, precision  the convolution's, as conv2d takes them
    out          of weight_size and input's dtype to write into; must not overlap an operand. Default: a new tensor, in
                 channels_last if input or grad_output is
    design       one of designs("conv2d_weight"), or its name; default: the last
    config       one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Products are added up in an order that sizes and config decide: the same bits every time. Error, elementwise:
    (gamma(N P Q + 4) + 2v + v^2) * (|grad_output| * |input|) plus the one rounding of the result, u = 2^-24 for ieee, 2^-53 for
    float64, 2^-23 for tf32 and 16-bit types, v = 2^-11 for tf32, else 0 (`numerics.error_bound`); what runs on CUDA
    cores computes tf32 as ieee. Differentiable, as conv2d. Raises as `gemm` does, before anything is launched.
    """
    return OPERATOR(
        design,
        config,
        input=input,
        weight_size=weight_size,
        grad_output=grad_output,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        precision=precision,
        out=out,
    )


CONV2D_WEIGHT = Operation("conv2d_weight", prepare, WEIGHT_RULES, LADDER, (TO_MATMUL,))
OPERATOR = Operator(LIBRARY, CONV2D_WEIGHT, arrange=Arrange(unfold))
