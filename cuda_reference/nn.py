"""tritonkernels.nn, computed by the CUDA designs: classes, arguments, `replace` and `restore` are documented there."""

from typing import Any

from torch import Tensor
from torch.nn import Module

from tritonkernels.annotations import Float32MatmulPrecision
from tritonkernels.nn import convolutions, gated, modules, swap
from tritonkernels.nn.swap import Swaps

from .conv2d import conv2d
from .matmul import matmul, split
from .views import conv1d, conv3d, conv_transpose1d, conv_transpose2d

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "GatedLinear", "Linear", "replace", "restore"]


class Linear(modules.Linear):
    """tritonkernels.nn.Linear, computed by the CUDA designs."""

    function, split = staticmethod(matmul), staticmethod(split)


class GatedLinear(gated.GatedLinear):
    """tritonkernels.nn.GatedLinear, computed by the CUDA designs."""

    function = staticmethod(matmul)


class Conv1d(convolutions.Conv1d):
    """tritonkernels.nn.Conv1d, computed by the CUDA designs."""

    function = staticmethod(conv1d)


class Conv2d(convolutions.Conv2d):
    """tritonkernels.nn.Conv2d, computed by the CUDA designs."""

    function = staticmethod(conv2d)


class Conv3d(convolutions.Conv3d):
    """tritonkernels.nn.Conv3d, computed by the CUDA designs."""

    function = staticmethod(conv3d)


class ConvTranspose1d(convolutions.ConvTranspose1d):
    """tritonkernels.nn.ConvTranspose1d, computed by the CUDA designs."""

    function = staticmethod(conv_transpose1d)


class ConvTranspose2d(convolutions.ConvTranspose2d):
    """tritonkernels.nn.ConvTranspose2d, computed by the CUDA designs."""

    function = staticmethod(conv_transpose2d)


SWAPPED = Linear, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d


def replace(
    model: Module,
    precision: Float32MatmulPrecision | None = None,
    only_where_faster: bool = True,
    inputs: Tensor | tuple[Any, ...] | dict[str, Any] | None = None,
    *,
    budget: float = 60.0,
    cache_split: bool = False,
) -> Swaps:
    """tritonkernels.nn.replace, with the classes of this package."""
    return swap.swap(model, SWAPPED, precision, only_where_faster, inputs, budget, cache_split)


def restore(model: Module) -> list[str]:
    """tritonkernels.nn.restore, for the classes of this package."""
    return swap.restore(model, (*SWAPPED, Conv3d))
