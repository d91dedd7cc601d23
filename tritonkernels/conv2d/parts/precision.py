"""The precision of a convolution and of its gradients: the caller's argument, and the mode that computes it."""

import torch

from ... import validate
from ...problem import FLOAT_PRECISION

FP32_PRECISIONS = ("ieee", "tf32", "torch")  # of float32, the default first; every other type has one


def resolved(precision, dtype):
    """The key of numerics.MODES that the argument `precision` stands for."""
    default = FLOAT_PRECISION[dtype]
    precision = validate.choice("precision", precision, FP32_PRECISIONS if default == "ieee" else (default,))
    if precision == "torch":
        return _torchs_precision()
    return precision


@torch.compiler.assume_constant_result  # torch.compile cannot trace the switch: compiled code keeps what it said
def _torchs_precision():
    return "tf32" if torch.backends.cudnn.conv.fp32_precision == "tf32" else "ieee"
