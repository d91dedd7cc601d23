"""The precision of a convolution and of its gradients: the caller's argument, and the mode that computes it."""

from ... import switches, validate
from ...numerics import MODES
from ...problem import FLOAT_PRECISION

FP32_PRECISIONS = ("ieee", "tf32", "fp32", "torch")  # of float32, the default first; every other type has one


def resolved(precision, dtype):
    """The key of numerics.MODES that the argument `precision` stands for."""
    default = FLOAT_PRECISION[dtype]
    precision = validate.choice("precision", precision, FP32_PRECISIONS if default == "ieee" else (default,), MODES)
    if precision == "torch":
        return switches.of_convolutions()
    return "ieee" if precision == "fp32" else precision  # nothing else here is as exact
