"""torch.nn's Linear and convolutions, computed by this library, and `replace`, which swaps them in a model where it is faster.

    from tritonkernels import nn

    layer = nn.Linear(512, 512, precision="tf32")
    layer.load_state_dict(torchs.state_dict())
    print(nn.replace(model, inputs=example))  # what it swapped, what it left, and why

`restore` undoes it. GatedLinear is two Linears and their gate in one product, as language models have them.
"""

from typing import Any

from torch import Tensor
from torch.nn import Module

from ..annotations import Float32MatmulPrecision
from . import swap
from .convolutions import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d
from .gated import GatedLinear
from .modules import Linear
from .swap import Swaps

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "GatedLinear", "Linear", "replace", "restore"]
SWAPPED = Linear, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d  # not Conv3d: strides decide whether it can be computed


def replace(
    model: Module,
    precision: Float32MatmulPrecision | None = None,
    only_where_faster: bool = True,
    inputs: Tensor | tuple[Any, ...] | dict[str, Any] | None = None,
    *,
    budget: float = 60.0,
    cache_split: bool = False,
) -> Swaps:
    """Swap a model's torch.nn.Linear and convolutions for this library's, in place, where they are measured to be faster.

    Conv1d, Conv2d, ConvTranspose1d and ConvTranspose2d are swapped; a Conv3d is left, since the strides of its input decide
    whether it can be computed.

    precision  of float32 modules, as Linear and Conv2d take it. torch's have the precision that torch's switches say
    only_where_faster  measure each module, ours and torch's in turns: its forward, and its backward if the model is in
                training mode and gradients are recorded. A module is swapped if ours is faster by more than the noise, in a
                CUDA graph and eagerly. Then the whole model is measured in the same way, and is left as it was if it is not
                faster. False: swap whatever can be computed here, without measuring, also without a GPU
    inputs      of the model: a tensor, a tuple of arguments or a dict of them by name. Modules are measured at the sizes that
                they have with these; a copy of the model runs on them
    cache_split  of Linear: keep planes of the weights for calls without gradients, as Linear says. A CUDA graph has none
    budget      seconds for measuring. What was not measured within them is left; a build that is under way ends first

    Returns Swaps, which say what became of each module and why. Measuring changes neither the model nor its gradients nor the
    state of random numbers.

    A swapped module is the same object with another class. So parameters, hooks, training flags, tied weights, optimizers and
    references to it stay as they are. Subclasses are left, as what they compute may be another thing. A module whose parent
    reads its weights without calling it (torch's TransformerEncoderLayer does so in eval mode) computes nothing there.

    Raises ArgumentError for a precision that no module has, for a budget that is not positive, and for `inputs` that the model
    does not run on; nothing is swapped then.
    """
    return swap.swap(model, SWAPPED, precision, only_where_faster, inputs, budget, cache_split)


def restore(model: Module) -> list[str]:
    """Give a model's modules of these classes torch's classes again, in place: undoes replace. Returns their names."""
    return swap.restore(model, (*SWAPPED, Conv3d))
