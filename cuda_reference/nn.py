"""tritonkernels.nn, computed by the CUDA designs: classes, arguments, `replace` and `restore` are documented there."""

from typing import Any

from torch import Tensor
from torch.nn import Module

from tritonkernels.annotations import Float32MatmulPrecision
from tritonkernels.nn import modules, swap
from tritonkernels.nn.swap import Swaps

from .conv2d import conv2d
from .matmul import matmul

__all__ = ["Conv2d", "Linear", "replace", "restore"]


class Linear(modules.Linear):
    """tritonkernels.nn.Linear, computed by the CUDA designs."""

    function = staticmethod(matmul)


class Conv2d(modules.Conv2d):
    """tritonkernels.nn.Conv2d, computed by the CUDA designs."""

    function = staticmethod(conv2d)


def replace(
    model: Module,
    precision: Float32MatmulPrecision | None = None,
    only_where_faster: bool = True,
    inputs: Tensor | tuple[Any, ...] | dict[str, Any] | None = None,
    *,
    budget: float = 60.0,
) -> Swaps:
    """tritonkernels.nn.replace, with the classes of this package."""
    return swap.swap(model, (Linear, Conv2d), precision, only_where_faster, inputs, budget)


def restore(model: Module) -> list[str]:
    """tritonkernels.nn.restore, for the classes of this package."""
    return swap.restore(model, (Linear, Conv2d))
