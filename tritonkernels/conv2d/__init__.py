"""Two-dimensional convolution (cross-correlation, as in torch), with the precision stated by the caller."""

from torch import Tensor

from ..annotations import Activation, Config, Conv2dPrecision, Padding, Pair
from ..design import Design
from ..launch import LIBRARY
from ..operation import Operation, Rung
from ..operations.conv2d.as_matmul import TO_MATMUL, Arrange
from ..operations.conv2d.prepare import prepare
from ..operations.conv2d.rules import CONV2D_RULES
from ..torch_ops import Operator

LADDER = (
    Rung(
        "naive",
        "a thread per output, operands straight from the caches",
        "conv2d: what the others are measured by",
        kind="lesson",
    ),
    Rung(
        "direct",
        "a tile of positions times a block of output channels, walking channels and taps",
        "conv2d write-up: direct",
        kind="lesson",
    ),
    Rung(
        "prefetched",
        "direct with the next inputs and weights under way while these are multiplied",
        "conv2d write-up: the next channel's inputs and the next filter are prefetched",
        kind="lesson",
    ),
    Rung(
        "depthwise",
        "runs of outputs of a column a thread, lanes along W, for one channel per group",
        "beyond the conv2d write-up: one channel per group",
    ),
    Rung(
        "depthwise_channels",
        "depthwise with lanes along channels, for channels_last; in Triton for long columns in NCHW, too",
        "beyond the conv2d write-up: one channel per group",
    ),
    Rung(
        "register_blocked",
        "direct with several outputs a lane, whose inputs slide through registers",
        "beyond the conv2d write-up: direct, for few channels",
    ),
    Rung(
        "grouped",
        "runs of outputs of a column a thread times several channels of a group, for groups of few channels",
        "beyond the conv2d write-up: register_blocked, for groups",
    ),
    Rung(
        "implicit_gemm",
        "a matrix product over taps and channels, inputs fetched from where they lie",
        "conv2d: im2col, named as future work",
    ),
    Rung(
        "warp_specialized",
        "warps that copy pixels of a tap and filters, warpgroups that multiply them by wgmma, for 16 bits and tf32 on Hopper",
        "CUTLASS's implicit GEMM of sm_90, forward",
    ),
    Rung(
        "winograd",
        "tiles of 4 x 4 or 2 x 2 outputs of a 3 x 3 filter by a quarter or half of the products, as a batch of matmuls",
        "conv2d: what cuDNN calls WINOGRAD_NONFUSED",
    ),
)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    *,
    precision: Conv2dPrecision | None = None,
    activation: Activation | None = None,
    residual: Tensor | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """The convolution of torch.nn.functional.conv2d, with its arguments and semantics; with what may follow it,
    activation(input conv weight + bias + residual), in one pass.

    input   (N, C, H, W) or (C, H, W), any strides (channels_last is answered in channels_last): float32, float16,
            bfloat16, all three with sums in fp32, or float64
    weight  (K, C / groups, R, S) of input's dtype, any strides
    bias    (K,) of input's dtype, or None
    stride, dilation  an int or a pair, at least 1
    padding an int or a pair, at least 0, of zeros on both sides; or "valid" (none), or "same" (stride 1 only: the result has
            the size of the input, the odd row or column of zeros below or to the right)
    groups  divides C and K
    precision  float32: "ieee" (default), "fp32" (the same: nothing else is as exact), "tf32" (inputs rounded to nearest, 10
            bits of mantissa, or more exact), or "torch": what torch.backends.cudnn.conv.fp32_precision says. Each other dtype
            has one: "fp16", "bf16", "fp64"
    activation  None, "relu", "gelu" (with erf) or "silu", of the sums before they are rounded
    residual  added to the sums before the activation: of the result's shape and input's dtype, any strides
    out     (N, K, P, Q) (or unbatched) of input's dtype to write into; may be the residual itself, and must not otherwise
            overlap an input. Default: a new tensor
    design  one of designs("conv2d"), or its name; default: chosen for the problem
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    P = (H + padding above and below - dilation * (R - 1) - 1) // stride + 1, Q likewise. N, C and K may be 0. In each
    direction, size + padding on both sides + 1024 (stride + dilation) is below 2^31: then every row and column that a kernel
    computes fits 32 bits, also those of a tile of up to 1024 outputs and taps that do not exist. Error,
    elementwise: (gamma(C / groups * R * S + 4) + 2v + v^2) * (|input| conv |weight| + |bias| + |residual|) plus the one
    rounding of the result, u = 2^-24 for ieee, 2^-53 for float64, 2^-23 for tf32 and 16-bit types, v = 2^-11 for tf32, else 0
    (`numerics.error_bound`). An activation multiplies the first term by its largest slope, 1, 1.13 or 1.1, and adds
    2^-20 of those absolute values (float64: 2^-48). The design "winograd" runs only when it is named: its bound is larger, for
    tiles of 4 x 4 about 6 times this one at 64 channels. Raises as `gemm` does, before anything is launched.

    Operands may require gradients of any order, in both modes of autograd: backward calls conv2d_input, conv2d_weight and
    conv2d_bias, in the precision of this call ("torch": what torch's switch said then), by designs of its own choice. Where
    gradients are recorded, the activation is torch's own, of the rounded sums: it keeps those for its gradient, as torch does.
    torch.func, torch.compile, torch.export and autocast (as torch's conv2d) see one operator. Into an `out` nothing is
    recorded: operands that require gradients are refused then.

    Source: "a hand-written CUDA convolution" (conv2d_direct).
    """
    return OPERATOR(
        design,
        config,
        input=input,
        weight=weight,
        bias=bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        precision=precision,
        activation=activation,
        residual=residual,
        out=out,
    )


def unfold(*copies):
    from ..language.unfolded import unfold  # a kernel

    return unfold(*copies)


CONV2D = Operation("conv2d", prepare, CONV2D_RULES, LADDER, (TO_MATMUL,))
OPERATOR = Operator(LIBRARY, CONV2D, arrange=Arrange(unfold))
