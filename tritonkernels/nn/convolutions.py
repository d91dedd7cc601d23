"""torch.nn's convolutions with another forward."""

from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from .. import validate
from ..annotations import Float32Conv2dPrecision
from ..conv2d import CONV2D, conv2d
from ..conv2d_input import CONV2D_INPUT
from ..errors import ArgumentError, ShapeError
from ..operations.conv2d.precision import FP32_PRECISIONS
from ..problem import FLOAT_PRECISION
from ..views import conv1d, conv3d, conv_transpose1d, conv_transpose2d
from .modules import OwnModule

PaddingMode = Literal["zeros", "reflect", "replicate", "circular"]
Each = TypeVar("Each")  # a tuple of ints, one for each direction


class AnyConvolution(OwnModule):
    """What convolutions and transposed ones have in common."""

    def fault(self, input: Any) -> ArgumentError | None:
        """As an error about the input, where the function's may be about the weight."""
        module: Any = self
        like = None if torch._C._is_any_autocast_enabled() else ("weight", module.weight)
        rank = module.weight.ndim
        try:
            validate.tensor("input", input, dtypes=tuple(FLOAT_PRECISION), ranks=(rank - 1, rank), like=like)
        except ArgumentError as error:
            return error
        if input.shape[1 - rank] == module.in_channels:
            return None
        allowed = f"{module.in_channels} channels, as weight is {tuple(module.weight.shape)}"
        return ShapeError("input", f"shape {tuple(input.shape)}", allowed, "Are channels last? Move them with .movedim().")


class Convolution(AnyConvolution, Generic[Each]):
    """What the convolutions have in common."""

    operation, precisions = CONV2D, FP32_PRECISIONS

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Each,
        stride: int | Each = 1,
        padding: int | Each | Literal["valid", "same"] = 0,
        dilation: int | Each = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        precision: Float32Conv2dPrecision | None = None,
    ) -> None:
        geometry = kernel_size, stride, padding, dilation, groups
        super().__init__(in_channels, out_channels, *geometry, bias, padding_mode, device, dtype)
        self.precision = self.checked(precision)

    @classmethod
    def arguments(cls, module: Any, input: Any, precision: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) of the function."""
        padding = module.padding
        if module.padding_mode != "zeros":
            input, padding = functional.pad(input, module._reversed_padding_repeated_twice, module.padding_mode), 0
        geometry = {"stride": module.stride, "padding": padding, "dilation": module.dilation, "groups": module.groups}
        return (input, module.weight), geometry | cls.options(module, precision)

    def forward(self, input: Tensor) -> Tensor:
        return self.computed(input)

    def computed(self, input: Tensor, **after: Any) -> Tensor:
        try:
            args, kwargs = self.arguments(self, input, self.precision)
            return self.function(*args, **kwargs, **after)
        except Exception:  # whatever it is, it is raised again, unless the input is at fault: then that is said
            self.raise_fault(input)
            raise


class Transposed(AnyConvolution, Generic[Each]):
    """What the transposed convolutions have in common."""

    operation, precisions = CONV2D_INPUT, FP32_PRECISIONS

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Each,
        stride: int | Each = 1,
        padding: int | Each = 0,
        output_padding: int | Each = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Each = 1,
        padding_mode: Literal["zeros"] = "zeros",
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        precision: Float32Conv2dPrecision | None = None,
    ) -> None:
        geometry = kernel_size, stride, padding, output_padding, groups
        super().__init__(in_channels, out_channels, *geometry, bias, dilation, padding_mode, device, dtype)
        self.precision = self.checked(precision)

    @classmethod
    def refuses(cls, module: Any) -> str | None:
        is_below = all(more < step for more, step in zip(module.output_padding, module.stride))
        return None if is_below else "an output_padding that is not below the stride"

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        module: Any = self
        sizes = module.output_padding, module.stride, module.padding, module.kernel_size, module.dilation
        try:
            return self.function(
                input,
                module.weight,
                stride=module.stride,
                padding=module.padding,
                output_padding=output_padding(input, output_size, *sizes),
                groups=module.groups,
                dilation=module.dilation,
                **self.options(module, self.precision),
            )
        except Exception:  # whatever it is, it is raised again, unless the input is at fault: then that is said
            self.raise_fault(input)
            raise


@torch.fx.wrap  # recorded as one call by torch.fx, which knows neither input's sizes nor whether there is an output_size
def output_padding(input, output_size, default, stride, padding, kernel_size, dilation):
    """The output_padding with which the result has `output_size`, as torch finds it; the module's own without one."""
    if output_size is None:
        return default
    found: Any = torch.nn.ConvTranspose2d._output_padding  # which reads `self` only without an output_size
    return found(None, input, output_size, stride, padding, kernel_size, len(kernel_size), dilation)


class Conv1d(Convolution[tuple[int]], torch.nn.Conv1d):
    """torch.nn.Conv1d, with its arguments, computed by conv1d; what is padded with other values than zero torch pads before."""

    torchs = torch.nn.Conv1d
    function = staticmethod(conv1d)


class Conv2d(Convolution[tuple[int, int]], torch.nn.Conv2d):
    """torch.nn.Conv2d, with its arguments, computed by conv2d; what is padded with other values than zero torch pads before.

    A call may have conv2d's residual and activation, too, in one pass: layer(input, residual, "relu").
    """

    torchs = torch.nn.Conv2d
    function = staticmethod(conv2d)

    def forward(self, input: Tensor, residual: Tensor | None = None, activation: str | None = None) -> Tensor:
        return self.computed(input, residual=residual, activation=activation)


class Conv3d(Convolution[tuple[int, int, int]], torch.nn.Conv3d):
    """torch.nn.Conv3d, with its arguments, computed by conv3d, which refuses what is no conv2d of views."""

    torchs = torch.nn.Conv3d
    function = staticmethod(conv3d)


class ConvTranspose1d(Transposed[tuple[int]], torch.nn.ConvTranspose1d):
    """torch.nn.ConvTranspose1d, with its arguments, computed by conv_transpose1d with the bias fused."""

    torchs = torch.nn.ConvTranspose1d
    function = staticmethod(conv_transpose1d)


class ConvTranspose2d(Transposed[tuple[int, int]], torch.nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d, with its arguments, computed by conv_transpose2d with the bias fused."""

    torchs = torch.nn.ConvTranspose2d
    function = staticmethod(conv_transpose2d)
