"""A call as plain values: what a failing property prints, and enough to build the same tensors again."""

from dataclasses import dataclass, field, fields
from typing import Any

import torch

from tests.harness import sentinel

NAMES = {
    "gemm": ("a", "b", "c"),
    "gemv": ("a", "x", "y"),
    "conv2d": ("input", "weight", "bias"),
    "conv2d_input": ("input_size", "weight", "grad_output"),
    "conv2d_weight": ("input", "weight_size", "grad_output"),
    "conv2d_bias": ("grad_output",),
    "matmul": ("a", "b"),
}


class Terse:
    """Prints as the code that makes it, without fields at their defaults."""

    def __repr__(self):
        said = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value, default in said if value != default)})"

    def _repr_pretty_(self, printer, cycle):
        printer.text(repr(self))


# Places around everything, so that a stray access meets poison, not the rest of the process. More, and torch would use threads.
MARGIN = 2**12


@dataclass(frozen=True, repr=False)
class Layout(Terse):
    """The position of a tensor's elements in a larger buffer; contiguous by default."""

    order: tuple[int, ...] = ()  # the dimensions from the outermost to the innermost; (): as they are
    steps: tuple[int, ...] = ()  # per dimension, places per element: 0 is expanded, 2 leaves every second one out; (): all 1
    gap: int = 0  # places left out after each dimension
    offset: int = 0  # places before the first element
    odd: int | None = None  # the stride of dimensions of size 1, which must never matter

    def place(self, shape, dtype, device):
        """(view, buffer): an unwritten view of this layout, without its expanded dimensions, and all the memory around it."""
        held = self.held(shape)
        strides, span = [0] * len(shape), 1
        for dim in reversed(self.order or range(len(shape))):
            step = self.steps[dim] if self.steps else 1
            strides[dim] = self.odd if self.odd is not None and shape[dim] == 1 else span * max(1, step)
            span = span * max(1, step) * max(1, held[dim]) + self.gap
        buffer = torch.full((MARGIN + self.offset + span + MARGIN,), sentinel(dtype), dtype=dtype, device=device)
        return buffer.as_strided(held, strides, MARGIN + self.offset), buffer

    def held(self, shape):
        """The shape in memory, with expanded dimensions once."""
        return [min(size, 1) if self.steps and not self.steps[dim] else size for dim, size in enumerate(shape)]


@dataclass(frozen=True, repr=False)
class Operand(Terse):
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    layout: Layout = Layout()
    values: str = "normal"  # or "integers": small, with exact sums; or "nan"
    planted: float | None = None  # stands in one place
    seed: int = 0

    def build(self, device="cpu"):
        """(tensor, buffer): the operand, and all the memory around it."""
        place, buffer = self.layout.place(self.shape, self.dtype, device)
        if place.numel():
            place.copy_(self._values(place.shape))
        return place.expand(self.shape), buffer

    def _values(self, shape):
        random = torch.Generator().manual_seed(self.seed)
        if self.values == "nan":
            values = torch.full(shape, torch.nan)
        elif self.values == "integers":
            values = torch.randint(-4, 5, shape, generator=random)
        elif not self.dtype.is_floating_point:
            info = torch.iinfo(self.dtype)
            values = torch.randint(info.min, info.max + 1, shape, generator=random)
        else:
            dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
            values = torch.randn(shape, generator=random, dtype=dtype)
        values = values.to(self.dtype)
        if self.planted is not None:
            values.view(-1)[torch.randint(values.numel(), (1,), generator=random)] = self.planted
        return values


@dataclass(frozen=True, repr=False)
class Size(Terse):
    """An argument that is a size."""

    shape: tuple[int, ...] = ()

    def build(self, device="cpu"):
        return self.shape, None


@dataclass(frozen=True, repr=False)
class Example(Terse):
    """op(*operands, **options), into an out of that layout if there is one, with the config of that rank in its design.

    Among the options, too, may be Operands.
    """

    op: str
    operands: tuple[Operand | Size | None, ...]
    options: dict[str, Any] = field(default_factory=dict)
    out: Layout | None = None
    config: int = 0

    def build(self, device="cpu"):
        """(tensors, buffers), None for an absent operand."""
        return tuple(zip(*((None, None) if x is None else x.build(device) for x in self.operands)))

    def keywords(self, device="cpu"):
        """The options of the call."""
        return {name: x.build(device)[0] if isinstance(x, Operand) else x for name, x in self.options.items()}
