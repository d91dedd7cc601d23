"""torch.nn's Linear and Conv2d, computed by this library, and `replace`, which swaps them in a model.

from tritonkernels import nn

layer = nn.Linear(512, 512, precision="tf32")
layer.load_state_dict(torchs.state_dict())
print(nn.replace(model, inputs=example))    # what it swapped, what it left, and why
"""

from ..launch import LIBRARY
from .modules import Conv2d, Linear
from .swap import swap

__all__ = ["Conv2d", "Linear", "replace"]


def replace(model, precision=None, only_where_faster=True, inputs=None, target=None):
    """Swap a model's torch.nn.Linear and torch.nn.Conv2d for this library's, in place; returns Swaps, which say what and why.

    precision  of float32 modules, as Linear and Conv2d take it
    only_where_faster  swap a module only if the model of time predicts less than the time that torch has by its recorded times
                of near shapes, at the precision that torch's switches say now, by more than that prediction is off elsewhere:
                in doubt torch stays. Times are of forward on the GPU, without the host's. False: swap whatever can be computed
                here, also without a GPU
    inputs      of the model, to learn the sizes of each module's: a tensor, a tuple of arguments or a dict of them by name.
                The model runs once, on fake tensors: nothing is computed, and its buffers stay as they are
    target      the GPU that the model will run on, by name ("h200"); default: the one that its parameters are on

    A swapped module is the same object with another class. So parameters, hooks, training flags, tied weights, optimizers and
    references to it stay as they are. Subclasses are left, as what they compute may be another thing. A module whose parent
    reads its weights without calling it (torch's TransformerEncoderLayer does so in eval mode) computes nothing there.

    Raises ArgumentError for a precision that no module has, for `inputs` that the model does not run on, and for a target
    that is not known; nothing is swapped then.
    """
    return swap(model, (Linear, Conv2d), LIBRARY, precision, only_where_faster, inputs, target)
