"""Convolutions of signals and volumes, and transposed ones: calls of conv2d and conv2d_input on views, in CUDA C++."""

from torch import Tensor

from tritonkernels.annotations import Config, Conv2dPrecision, Padding, Pair, Steps
from tritonkernels.design import Design
from tritonkernels.operations.views import call

from .launch import LIBRARY


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
    """tritonkernels.conv1d, by the CUDA designs: arguments, result, error bound and errors are documented there."""
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
    """tritonkernels.conv3d, by the CUDA designs: arguments, result, error bound and errors are documented there."""
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
    """tritonkernels.conv_transpose1d, by the CUDA designs: arguments, result, error bound and errors are documented there."""
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
    """tritonkernels.conv_transpose2d, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    geometry = stride, padding, output_padding, groups, dilation
    return call(LIBRARY, "conv_transpose2d", (input, weight, bias, *geometry), precision, out, design, config)
