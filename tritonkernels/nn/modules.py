"""torch.nn's modules with another forward: what they hold, and their state dicts, are torch's own."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.fx import Proxy

from .. import validate
from ..annotations import Float32MatmulPrecision
from ..errors import ArgumentError, ShapeError
from ..matmul import MATMUL, matmul, split
from ..numerics import MODES
from ..operation import Operation
from ..operations.matmul.prepare import ACCEPTS
from .kept_split import Kept, kept_split

Own = TypeVar("Own", bound="OwnModule")


class OwnModule(torch.nn.Module):
    """A base in front of a class of torch.nn, with a forward that calls `function` with what `arguments` says.

    precision  of float32 weights, of the function's; None is its default, "ieee". Weights of other types have one. Under
               autocast None is lowered as torch's own; a module with a precision stays in float32
    """

    torchs: type  # the class of torch.nn
    operation: Operation
    precisions: tuple[str, ...]
    function: Callable[..., Tensor]
    precision: str | None
    own: tuple[str, ...] = ("precision",)  # its keyword arguments that torch's module has not

    @classmethod
    def from_torch(cls: type[Own], module: torch.nn.Module, precision: Float32MatmulPrecision | None = None) -> Own:
        """One with torch's module's parameters (the same objects), hooks and mode; the module itself stays as it is."""
        if type(module) is not cls.torchs:
            allowed = f"a torch.nn.{cls.torchs.__name__} itself: a subclass may compute another thing"
            raise ArgumentError("module", f"a {type(module).__name__}", allowed, "Leave it as it is.")
        made = cls.__new__(cls)
        held = {name: copy.copy(value) if isinstance(value, (dict, set)) else value for name, value in vars(module).items()}
        vars(made).update(held, precision=cls.checked(precision))
        return made

    @classmethod
    def adopt(cls, module: Any, options: dict[str, Any]) -> None:
        """Make torch's module one of this class, with those of the options that it has; it stays the same object."""
        module.__class__ = cls
        vars(module).update({name: options[name] for name in cls.own})

    @classmethod
    def leave(cls, module: Any) -> None:
        """Make a module of this class torch's again."""
        module.__class__ = cls.torchs
        for name in (*cls.own, "kept"):
            vars(module).pop(name, None)

    @classmethod
    def checked(cls, precision: str | None) -> str | None:
        return precision if precision is None else validate.choice("precision", precision, cls.precisions, MODES)

    @classmethod
    def refuses(cls, module: Any) -> str | None:
        """Why the function computes no call of torch's module, whatever its input; None if it may."""
        return None

    @classmethod
    def options(cls, module: Any, precision: str | None) -> dict[str, Any]:
        """The function's keyword arguments for a module of torch's or of this class."""
        weight = module._parameters.get("weight", module.weight)  # as an attribute it is a Proxy while torch.fx traces
        return {"bias": module.bias, "precision": precision if weight.dtype == torch.float32 else None}

    def fault(self, input: Any) -> ArgumentError | None:
        """The error of a call with a bad input in the module's own words; None of another."""
        raise NotImplementedError

    def raise_fault(self, input: Any) -> None:
        """Raise the error of a call that has failed, if it has one in the module's own words."""
        if fault := self.fault(input):
            raise fault from None

    def extra_repr(self) -> str:
        given = "".join(f"{name}={value}, " for name in self.own if (value := getattr(self, name)))
        return f"{super().extra_repr()}, {given}{self.function.__module__.partition('.')[0]}"


class Linear(OwnModule, torch.nn.Linear):
    """torch.nn.Linear, with its arguments, computed by matmul with the bias fused; the one of `precision` is matmul's.

    cache_split  of "fp32" and the split modes: keep the planes of the weight (`split`) from call to call, for inference. They
               are made by the first call that records no gradient of the weight, and again after the weight was changed. They
               take as many bytes as the weight, twice as many for "tf32x3", 1.5 times for "bf16x6" and "bf16x9", and are freed
               by a call that records a gradient, and by .to(). State dicts, copies and files have none. torch does not count
               changes through weight.data, so planes do not follow these. What is recorded and called later reads the weight
               itself, as do torch.compile, torch.export, torch.func and CUDA graphs; a call on another stream splits again.
               May be changed at any time: layer.cache_split = True
    """

    torchs, operation, precisions = torch.nn.Linear, MATMUL, ACCEPTS[torch.float32][0]
    function, split = staticmethod(matmul), staticmethod(split)
    own = "precision", "cache_split"
    cache_split: bool = False
    kept: Kept | None = None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        precision: Float32MatmulPrecision | None = None,
        cache_split: bool = False,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self.precision, self.cache_split = self.checked(precision), cache_split

    def __getstate__(self) -> dict[str, Any]:
        """Without planes: copies and what is loaded make their own."""
        return {name: value for name, value in vars(self).items() if name != "kept"}

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        """What .to() and the like do, which free the memory of the weight."""
        self.kept = None
        return super()._apply(*args, **kwargs)

    @classmethod
    def arguments(cls, module: Any, input: Any, precision: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) of the function: all leading dimensions are rows of one product."""
        rows = input.flatten(0, -2) if isinstance(input, Proxy) or input.ndim > 2 else input
        return (rows, module.weight.t()), cls.options(module, precision)

    def fault(self, input: Any) -> ArgumentError | None:
        """In the module's own words, as matmul's operands have other names."""
        like = None if torch._C._is_any_autocast_enabled() else ("weight", self.weight)
        try:
            weight = validate.tensor("weight", self.weight, dtypes=tuple(ACCEPTS), ranks=(2,))
            input = validate.tensor("input", input, dtypes=tuple(ACCEPTS), ranks=range(1, 65), like=like)
        except ArgumentError as error:
            return error
        if input.shape[-1] == weight.shape[1]:
            return None
        allowed = f"a last size of {weight.shape[1]}, as weight is {tuple(weight.shape)}"
        return ShapeError("input", f"shape {tuple(input.shape)}", allowed, "Is it transposed? Pass its .mT.")

    def forward(self, input: Tensor) -> Tensor:
        batch = input[None] if isinstance(input, Proxy) else input  # torch.fx traces for any rank
        try:
            (rows, b), kwargs = self.arguments(self, batch, self.precision)
            if self.cache_split and batch is input and not torch.compiler.is_compiling():
                b = kept_split(self, b, self.split)
            result = self.function(rows, b, **kwargs)
        except Exception:  # whatever it is, it is raised again, unless the input is at fault: then that is said
            self.raise_fault(input)
            raise
        if batch is not input:
            return result.unflatten(0, batch.shape[:-1])[0]
        return result.unflatten(0, input.shape[:-1]) if input.ndim > 2 else result
