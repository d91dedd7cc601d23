"""Rules: what torch needs to know of an operation, as it follows from what the operation computes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..layouts import is_channels_last, is_column_major
from ..problem import holds, is_known

GROUPS = "groups"  # the argument with the number of groups, and the label of channels that lie in groups


class Form(NamedTuple):
    """What a gradient has in common with the tensor that it is the gradient of."""

    shape: torch.Size
    dtype: torch.dtype
    memory_format: torch.memory_format
    by_columns: bool  # matrices

    @staticmethod
    def of(tensor):
        memory_format = torch.channels_last if is_channels_last(tensor) else torch.contiguous_format
        return Form(tensor.shape, tensor.dtype, memory_format, is_column_major(tensor))

    def product(self, function, left, right, **options):
        """function(left, right, **options), a product of matrices. By columns it is the transpose of the transposed product."""
        if not self.by_columns:
            return function(left, right, **options)
        *batch, m, n = self.shape
        return summed(function(right.mT, left.mT, **options), torch.Size((*batch, n, m))).mT  # a sum's result lies by rows

    def fitted(self, gradient):
        """The gradient, summed to the tensor's shape."""
        gradient = summed(gradient, self.shape)
        return gradient if gradient.dtype == self.dtype else gradient.to(self.dtype)


def summed(tensor, shape):
    """The tensor, summed to a shape that broadcasts to its own. A size that only data decides is none that broadcasts."""
    if all(map(is_known, (*tensor.shape, *shape))):
        return tensor if tensor.shape == shape else tensor.sum_to_size(shape)
    front = tensor.ndim - len(shape)
    ones = [front + dim for dim, size in enumerate(shape) if holds(size == 1) and not holds(tensor.shape[front + dim] == 1)]
    return tensor.sum([*range(front), *ones], keepdim=True)[(0,) * front] if front or ones else tensor


def unchanged(**arguments):
    """`settled` and `asked` of operations whose arguments torch's schemas can express."""
    return arguments


@dataclass(frozen=True)
class Rules:
    """What torch needs to know of an operation whose result is linear in each of its factors, plus addends.

    arguments  the operator's, in torch's schema language, without `design`, `config` and `out`
    gradients  (ops, grad, forms, **arguments) -> {tensor: () -> its gradient, before it is summed to the tensor's shape}, as
               calls of `ops`, the package's operators. Tensors that no wanted gradient needs are None; `forms` has all Forms
    addends    {tensor: (its tangent, forms, **arguments) -> the result's}; the other tensors are factors
    batched    (ops, size, dims, **arguments) -> `size` results, stacked along dimension 0; None if the operation has no such
               batch. `dims` are the dimensions of the tensors that hold it, None for tensors without
    flops      (result, **arguments) -> FLOP of the products alone, as torch counts them
    labels     (**arguments) -> {tensor and "result": a label for each dimension}: which sum of products it is, as torch.einsum
               has it; None for dimensions of size 1 that broadcast, and for those that ranks cannot share out
    settled    a user's arguments -> the operator's; errors are typed
    asked      the operator's arguments -> a user's
    outer      (**arguments) -> None, or of a call with an activation (function, arguments without it): recorded, it is torch's
    lowered    whether autocast lowers the operands, as torch.mm's; else it raises them to float32
    switch     () -> what precision="torch" is now
    constants  the tensors that have no gradient, and that neither gradients nor tangents of the others need
    """

    arguments: str
    gradients: Callable[..., dict[str, Callable[[], Any]]]
    batched: Callable[..., Any]
    flops: Callable[..., int]
    labels: Callable[..., dict[str, tuple]]
    addends: dict[str, Callable[..., Any]]
    settled: Callable[..., dict[str, Any]] = unchanged
    asked: Callable[..., dict[str, Any]] = unchanged
    outer: Callable[..., Any] | None = None
    lowered: bool = True
    switch: Callable[[], str] | None = None
    constants: tuple[str, ...] = ()


def aligned(tensor, labels):
    """The labels of a tensor that is broadcast to dimensions of these labels."""
    if tensor is None:
        return ()
    return tuple(None if size == 1 else label for size, label in zip(reversed(tensor.shape), reversed(labels)))[::-1]


def front(tensor, dim):
    """The tensor with its batch, if it has one, in the first dimension."""
    return tensor if dim is None else tensor.movedim(dim, 0)


def padded(tensor, rank):
    """The tensor, batch first, with ones behind the batch so that it has `rank` other dimensions."""
    return tensor.reshape(tensor.shape[0], *[1] * (rank + 1 - tensor.ndim), *tensor.shape[1:])
