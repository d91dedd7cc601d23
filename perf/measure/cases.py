"""The calls that are compared: a Case makes the operands of one; suites (suites.py) and random draws (shapes.py) have many."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import torch

from tritonkernels.problem import dtype_name

LAYOUTS = ("row", "channels_last")  # of convolutions


@dataclass(frozen=True)
class Operand:
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    layout: str = "row"  # "col": transposed in memory; "pitched": NaN between the rows; "channels_last"

    def draw(self, generator):
        """Random values; on the CPU the same for a seed on every machine. Their mean is not 0, so that a wrong sign shows."""
        if not self.dtype.is_floating_point:
            least, most = {torch.int8: (-127, 127), torch.uint8: (0, 255), torch.int32: (-1000, 1000)}[self.dtype]
            values = torch.randint(least, most + 1, self.shape, generator=generator, dtype=self.dtype, device=generator.device)
        else:
            values = torch.randn(self.shape, generator=generator, device=generator.device).add_(0.25).to(self.dtype)
        return self._laid_out(values)

    def outline(self):
        """The operand without values, on the meta device."""
        return self._laid_out(torch.empty(self.shape, dtype=self.dtype, device="meta"))

    def _laid_out(self, values):
        if self.layout == "col":
            return values.mT.contiguous().mT
        if self.layout == "pitched":
            return torch.nn.functional.pad(values, (0, 3), value=math.nan)[..., : self.shape[-1]]
        if self.layout == "channels_last":
            return values.contiguous(memory_format=torch.channels_last)
        return values


@dataclass(frozen=True)
class Given:
    """A positional argument that is no tensor, such as the size of a gradient."""

    value: Any

    def draw(self, generator):
        return self.value

    def outline(self):
        return self.value


@dataclass(frozen=True)
class Case:
    op: str
    name: str
    operands: tuple[Operand | Given, ...]
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    gpu_only: bool = False  # would take minutes without one
    named: dict[str, Operand] = field(default_factory=dict, hash=False)  # operands that are keyword arguments
    chosen: bool = False  # what a call without design= gets is compared, not every design
    cache: str = "flushed"  # L2 before a timed call; calls in a row: "rotating" over copies that exceed it, or "resident"

    def arguments(self, seed, device, drawn_on="cpu"):
        """(args, kwargs) of the user function. Large operands are drawn much faster on a GPU, but not the same on every one."""
        generator = torch.Generator(drawn_on).manual_seed(seed)
        args = [placed(operand.draw(generator), device) for operand in self.operands]
        named = {name: placed(operand.draw(generator), device) for name, operand in self.named.items()}
        return args, self.options | named

    def outlines(self):
        """The same on the meta device, for uses that need only shapes and strides."""
        named = {name: operand.outline() for name, operand in self.named.items()}
        return [operand.outline() for operand in self.operands], self.options | named


def placed(tensor, device, copy=False):
    """The tensor on the device with its strides, which Tensor.to keeps for dense tensors only; another value as it is."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    span = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + 1
    return tensor.as_strided((span,), (1,)).to(device, copy=copy).as_strided(tensor.shape, tensor.stride())


def gemm(m, n, k, a="row", b="row", c="row", dtype=torch.float32, gpu_only=False, **options):
    operands = (Operand((m, k), dtype, a), Operand((k, n), dtype, b))
    if "beta" in options:
        operands += (Operand((m, n), dtype, c),)
    name = f"{m}x{n}x{k}" if dtype == torch.float32 else f"{m}x{n}x{k} {dtype_name(dtype)}"
    return Case("gemm", name, operands, options, gpu_only)


def gemv(m, n, a="row", dtype=torch.float32, batch=(), gpu_only=False, **options):
    operands = (Operand((*batch, m, n), dtype, a), Operand((*batch, n), dtype))
    if "beta" in options:
        operands += (Operand((m,), dtype),)
    sizes = "x".join(map(str, (*batch, m, n))) + " transposed" * (a == "col")
    name = sizes if dtype == torch.float32 else f"{sizes} {dtype_name(dtype)}"
    return Case("gemv", name, operands, options, gpu_only)


def conv2d(image, weight, layout="row", dtype=torch.float32, bias=False, gpu_only=False, **options):
    """Image and filters in the same layout: torch would copy filters of another layout in every call."""
    operands = (Operand(image, dtype, layout), Operand(weight, dtype, layout), *([Operand(weight[:1], dtype)] if bias else ()))
    sizes = f"{'x'.join(map(str, image))} by {'x'.join(map(str, weight))}"
    kinds = (layout if layout != "row" else "", "" if dtype == torch.float32 else dtype_name(dtype))
    return Case("conv2d", " ".join(filter(None, (sizes, *kinds))), operands, options, gpu_only)


def layer(images, channels, size, outputs, taps, stride=1, layout="row", dtype=torch.float32, groups=1, gpu_only=True):
    """A layer of a vision model: square, padded so that only the stride makes it smaller."""
    options = {"stride": stride, "padding": taps // 2, "groups": groups}
    shapes = (images, channels, size, size), (outputs, channels // groups, taps, taps)
    return conv2d(*shapes, layout, dtype, gpu_only=gpu_only, **options)


def matmul(m, n, k, dtype=torch.float32, a="row", b="row", batch=(), gpu_only=False, named=None, other=None, **options):
    """k is as stored: in bytes where the precision packs several elements into a byte; `other` is B's dtype, if not A's."""
    named = named or {}
    operands = (Operand((*batch, m, k), dtype, a), Operand((*batch, k, n), other or dtype, b))
    kinds = " by ".join(dtype_name(kind) for kind in (dtype, other) if kind)
    kinds = " to ".join((kinds, *(dtype_name(kind) for kind in (options.get("out_dtype"),) if kind)))
    modes = [options[name] for name in ("precision", "accumulate", "activation") if name in options and dtype != torch.float32]
    scaled = sorted({"scaled rows" if operand.shape else "scaled" for name, operand in named.items() if "scale" in name})
    name = " ".join(("x".join(map(str, (*batch, m, n, k))), kinds, *modes, *scaled[-1:]))
    return Case("matmul", name, operands, options, gpu_only, named)


def scales(rows=None, columns=None):
    """The scales of both operands of fp8: one each, or one for each row of A and column of B."""
    shapes = ((rows, 1), (1, columns)) if rows else ((), ())
    return {name: Operand(shape) for name, shape in zip(("scale_a", "scale_b"), shapes)}


BUILDERS = {"gemm": gemm, "gemv": gemv, "conv2d": conv2d, "matmul": matmul}


def read(op, path):
    """The Cases of a JSON file; an error in words if it is not one."""
    if op not in BUILDERS:
        raise ValueError(f"cases can be written for {', '.join(BUILDERS)}")
    rows = json.loads(path.read_text())
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a JSON list of objects")
    return [BUILDERS[op](**{name: _argument(name, value) for name, value in row.items()}) for row in rows]


def _argument(name, value):
    if name.endswith("dtype"):
        if not isinstance(getattr(torch, str(value), None), torch.dtype):
            raise ValueError(f"{name}: {value!r} is no dtype of torch")
        return getattr(torch, value)
    return tuple(value) if isinstance(value, list) else value
