"""A gated linear unit as a module: both projections of a transformer's feed-forward layer, and their gate, in one product."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from .. import validate
from ..annotations import Float32MatmulPrecision, Gated
from ..errors import ShapeError
from ..matmul import matmul
from ..numerics import MODES
from ..operations.matmul.prepare import ACCEPTS
from ..problem import GATED

Own = TypeVar("Own", bound="GatedLinear")


class GatedLinear(torch.nn.Module):
    """activation(x Wg^T + bg) * (x Wv^T + bv), with its two projections' rows in turn in one weight.

    in_features, features  of x, and of the result
    activation  "swiglu" (SiLU, as in Llama), "geglu" (GELU with erf) or "reglu"
    bias        default False, as those models have none
    precision   of a float32 weight, matmul's; gated linear units have "ieee" (its default) and "tf32"

    The weight is (2 features, in_features): row 2 j is the gate's, 2 j + 1 the value's, and the bias likewise.
    `from_linears` makes it of two Linears. torch.nn.Linear's initialization.

        up = GatedLinear.from_linears(mlp.gate_proj, mlp.up_proj)
        y = mlp.down_proj(up(x))  # silu(gate_proj(x)) * up_proj(x)
    """

    function: Callable[..., Tensor] = staticmethod(matmul)

    def __init__(
        self,
        in_features: int,
        features: int,
        activation: Gated = "swiglu",
        bias: bool = False,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        precision: Float32MatmulPrecision | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.features = in_features, features
        self.activation = validate.choice("activation", activation, tuple(GATED))
        if precision is not None:
            validate.choice("precision", precision, ACCEPTS[torch.float32][0], MODES)
        self.precision = precision
        both = torch.nn.Linear(in_features, 2 * features, bias, device, dtype)
        self.weight = both.weight
        self.register_parameter("bias", both.bias)

    @classmethod
    def from_linears(
        cls: type[Own],
        gate: torch.nn.Linear,
        value: torch.nn.Linear,
        activation: Gated = "swiglu",
        precision: Float32MatmulPrecision | None = None,
    ) -> Own:
        """One that computes activation(gate(x)) * value(x), with copies of both Linears' weights and biases."""
        if gate.weight.shape != value.weight.shape or (gate.bias is None) != (value.bias is None):
            got, allowed = str(value), f"a Linear with the sizes and the kind of bias of gate, {gate}"
            raise ShapeError("value", got, allowed, "Each gate has a value.")
        features, in_features = gate.weight.shape
        made = cls(in_features, features, activation, gate.bias is not None, "meta", gate.weight.dtype, precision=precision)
        for name, of_gate in gate.named_parameters():
            both = torch.stack((of_gate.detach(), getattr(value, name).detach()), 1).flatten(0, 1)
            setattr(made, name, torch.nn.Parameter(both, of_gate.requires_grad))
        return made.train(gate.training)

    def forward(self, input: Tensor) -> Tensor:
        precision = self.precision if self.weight.dtype == torch.float32 else None
        rows = input.flatten(0, -2) if input.ndim > 2 else input
        result = self.function(rows, self.weight.t(), bias=self.bias, activation=self.activation, precision=precision)
        return result.unflatten(0, input.shape[:-1]) if input.ndim > 2 else result

    def extra_repr(self) -> str:
        sizes = f"in_features={self.in_features}, features={self.features}, activation={self.activation!r}"
        precision = f"precision={self.precision}, " if self.precision else ""
        return f"{sizes}, bias={self.bias is not None}, {precision}{self.function.__module__.partition('.')[0]}"
