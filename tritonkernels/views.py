"""Convolutions of signals and volumes, and transposed ones: calls of conv2d and conv2d_input on views."""

from torch import Tensor

from .annotations import Config, Conv2dPrecision, Padding, Pair, Steps
from .design import Design
from .launch import LIBRARY
from .operations.views import call


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    groups: int = 1,
    *,
    precision: Conv2dPrecision | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """The convolution of torch.nn.functional.conv1d, with its arguments and semantics: conv2d of images of one column.

    input   (N, C, L) or (C, L), any strides (channels innermost are answered so): float32, float16, bfloat16, all three with
            sums in fp32, or float64
    weight  (K, C / groups, R) of input's dtype, any strides
    bias    (K,) of input's dtype, or None
    stride, dilation  an int or a tuple of one, at least 1
    padding an int or a tuple of one, at least 0; or "valid" or "same", as conv2d takes them
    out     (N, K, P) (or unbatched) of input's dtype to write into; must not overlap an input. Default: a new tensor
    groups, precision, design, config  as conv2d takes them; design is one of designs("conv2d")

    P = (L + padding on both sides - dilation * (R - 1) - 1) // stride + 1. Views of the operands are conv2d's, so nothing is
    copied. Error bound, gradients and errors are conv2d's too; errors name shapes of images, (N, C, L, 1).

    Source: torch's, which computes it as a convolution of images too.
    """
    geometry = stride, padding, dilation, groups
    return call(LIBRARY, "conv1d", (input, weight, bias, *geometry), precision, out, design, config)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    groups: int = 1,
    *,
    precision: Conv2dPrecision | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """The convolution of torch.nn.functional.conv3d, where it is a conv2d of views of its operands.

    input   (N, C, D, H, W) or (C, D, H, W), any strides: float32, float16, bfloat16, all three with sums in fp32, or float64
    weight  (K, C / groups, T, R, S) of input's dtype, any strides
    bias    (K,) of input's dtype, or None
    stride, dilation  an int or three, at least 1
    padding an int or three, at least 0; or "valid" or "same", as conv2d takes them
    out     (N, K, O, P, Q) (or unbatched) of input's dtype to write into; must not overlap an input. Default: a new tensor,
            which lies in memory as conv2d's result for these views does
    groups, precision, design, config  as conv2d takes them; design is one of designs("conv2d")

    Computed are filters that span the depth without padding, as of patches of frames (T = D); of depth 1, where one stride
    leads through the slices of all volumes (N = 1, or channels_last_3d); and of width or height 1 with a stride of 1 and no
    padding there. All others raise UnsupportedError, with the reason for each of these. Error bound, gradients and other
    errors are conv2d's, which name shapes of images.

    Source: the views of patch embeddings in vision-language models.
    """
    geometry = stride, padding, dilation, groups
    return call(LIBRARY, "conv3d", (input, weight, bias, *geometry), precision, out, design, config)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Steps = 1,
    padding: Steps = 0,
    output_padding: Steps = 0,
    groups: int = 1,
    dilation: Steps = 1,
    *,
    precision: Conv2dPrecision | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """The transposed convolution of torch.nn.functional.conv_transpose1d: conv_transpose2d of images of one column.

    input   (N, C, L) or (C, L), any strides: float32, float16, bfloat16, all three with sums in fp32, or float64
    weight  (C, K / groups, R) of input's dtype, any strides
    bias    (K,) of input's dtype, or None
    stride, padding, output_padding, dilation  an int or a tuple of one, as conv_transpose2d takes them
    out     (N, K, P) (or unbatched) of input's dtype to write into; must not overlap an input. Default: a new tensor
    groups, precision, design, config  as conv_transpose2d takes them

    P = (L - 1) * stride - 2 * padding + dilation * (R - 1) + output_padding + 1. Error bound, gradients and errors are those of
    conv_transpose2d; errors name shapes of images, (N, C, L, 1).

    Source: torch's, which computes it as one of images too.
    """
    geometry = stride, padding, output_padding, groups, dilation
    return call(LIBRARY, "conv_transpose1d", (input, weight, bias, *geometry), precision, out, design, config)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    output_padding: Pair = 0,
    groups: int = 1,
    dilation: Pair = 1,
    *,
    precision: Conv2dPrecision | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """The transposed convolution of torch.nn.functional.conv_transpose2d, with its arguments and semantics, by conv2d_input.

    input   (N, C, H, W) or (C, H, W), any strides (channels_last is answered in channels_last): float32, float16, bfloat16,
            all three with sums in fp32, or float64
    weight  (C, K / groups, R, S) of input's dtype, any strides
    bias    (K,) of input's dtype, or None: added in the same kernel
    stride, dilation  an int or a pair, at least 1
    padding an int or a pair, at least 0: rows and columns that the result has less on both sides
    output_padding  an int or a pair, less than the stride: rows and columns that it has more, below and to the right
    groups  divides C and K
    out     (N, K, P, Q) (or unbatched) of input's dtype to write into; must not overlap an input. Default: a new tensor
    precision, design, config  as conv2d_input takes them; design is one of designs("conv2d_input")

    P = (H - 1) * stride - 2 * padding + dilation * (R - 1) + output_padding + 1, Q likewise. It is the gradient of a
    convolution with respect to its input, where `input` is the gradient of its result: the error bound is conv2d_input's.
    Its own gradients are conv2d, conv2d_weight and conv2d_bias. UnsupportedError where output_padding is not below the stride,
    which torch takes if it is below the dilation. Raises as `gemm` does, before anything is launched.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning".
    """
    geometry = stride, padding, output_padding, groups, dilation
    return call(LIBRARY, "conv_transpose2d", (input, weight, bias, *geometry), precision, out, design, config)
