"""The types of the user functions' arguments, for type checkers and editors. What a call is given is checked by validate.py.

A call whose `precision` is a variable may name its type: `precision: MatmulPrecision = "tf32"`.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

OperationName = Literal["gemm", "gemv", "conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias", "matmul"]
ViewName = Literal["conv1d", "conv3d", "conv_transpose1d", "conv_transpose2d"]

# The precisions of float32 operands, which modules take, and with those of all other dtypes.
Float32MatmulPrecision = Literal["fp32", "ieee", "tf32", "tf32x3", "fp16x3", "bf16x6", "bf16x9", "torch"]
SplitPrecision = Literal["fp32", "tf32x3", "fp16x3", "bf16x6", "bf16x9"]  # those of planes
Float32Conv2dPrecision = Literal["fp32", "ieee", "tf32", "torch"]
MatmulPrecision = Literal[
    Float32MatmulPrecision, "fp16", "bf16", "fp64", "fp8", "int8", "uint8", "int4", "uint4", "b1_xor", "b1_and"
]
Conv2dPrecision = Literal[Float32Conv2dPrecision, "fp16", "bf16", "fp64"]

Accumulate = Literal["fp32", "fp16", "fp64", "int32", "fast"]
Activation = Literal["relu", "gelu", "silu"]
Gated = Literal["swiglu", "geglu", "reglu"]
MatmulActivation = Literal[Activation, Gated]

Size = tuple[int, ...] | list[int]
Pair = int | tuple[int, ...] | list[int]
Steps = Pair  # one, or one for each direction
Padding = Pair | Literal["valid", "same"]


class TritonConfig(Protocol):
    """A triton.Config, by what is read of it: naming the class would import Triton."""

    def all_kwargs(self) -> Any: ...


Config = Mapping[str, Any] | TritonConfig
