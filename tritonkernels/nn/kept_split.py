"""The Split of a Linear's weight, kept from call to call."""

from typing import NamedTuple

import torch

from ..operations.matmul.schemes import SCHEMES
from ..operations.matmul.split import Split, is_of
from ..plans import is_plain, stream_of
from ..torch_ops.operator import is_traced


class Kept(NamedTuple):
    weight: torch.Tensor
    stream: int  # on which the planes were made: on another they may not be ready, or be freed too early
    split: Split


def kept_split(module, b, split):
    """B, the weight transposed, as the Split that the module keeps, made by split() if there is none of the weight as it is
    now. B itself where its gradient is recorded, or the call: then the weight may change before it is repeated."""
    weight = module._parameters.get("weight")  # a parametrization makes another tensor for each call
    if weight is None or not _can_be_split(weight, module.precision) or _is_recorded(weight):
        return b
    if weight.requires_grad and torch.is_grad_enabled():
        module.kept = None
        return b
    kept, stream = module.kept, stream_of(weight.device)
    if not (kept and kept.weight is weight and kept.stream == stream and is_of(kept.split, b)):
        module.kept = kept = None  # their memory is free before there are other planes
        module.kept = kept = Kept(weight, stream, split(b, precision=module.precision))
    return kept.split


def _can_be_split(weight, precision):
    counts_changes = is_plain(weight) and not weight.is_inference()
    return counts_changes and precision in SCHEMES and weight.dtype == torch.float32


def _is_recorded(weight):
    return is_traced() or (weight.is_cuda and torch.cuda.is_current_stream_capturing())
