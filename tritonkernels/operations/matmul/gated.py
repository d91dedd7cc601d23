"""The interleaved operand of a gated linear unit."""

import torch
from torch import Tensor

from ... import validate
from ...errors import ShapeError
from .prepare import ACCEPTS


def interleave(gate: Tensor, value: Tensor) -> Tensor:
    """The columns of two tensors in turn, (..., 2 F) of (..., F) each: the b, or the bias, of a gated linear unit.

        b = interleave(gate, up)  # (K, 2 F): column 2 j is the gate, 2 j + 1 the value
        y = matmul(x, b, activation="swiglu")  # silu(x @ gate) * (x @ up), in one pass

    It copies, so it is for weights that are used again. Weights of torch.nn.Linear are (F, K): pass the .mT of both. The result
    has adjacent columns then; torch.stack((gate, up), 1).flatten(0, 1).mT is the same along K, as such weights are.

    Raises ShapeError, DtypeError, DeviceError.
    """
    gate = validate.tensor("gate", gate, dtypes=tuple(ACCEPTS), ranks=range(1, 65))
    value = validate.tensor("value", value, dtypes=tuple(ACCEPTS), ranks=range(1, 65), like=("gate", gate))
    if value.shape != gate.shape:
        raise ShapeError("value", tuple(value.shape), f"{tuple(gate.shape)}, the shape of gate", "Each gate has a value.")
    return torch.stack((gate, value), -1).flatten(-2)
