"""conv3d as a conv2d of views, where there is one: two neighbouring dimensions become one.

    depth in channels  a filter that spans the depth, as one of patches of frames: its slices are more channels
    depth in batch     a filter of depth 1: each slice of the volume is an image
    columns in rows    a filter of width 1: columns of all rows are one axis, on which the filter's rows are a row apart
    rows in depth      a filter of height 1: likewise, with the filter's slices a slice apart

Whether two dimensions can become one depends on strides: no data is moved for it. A filter of several taps in all directions is
no conv2d.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from .. import validate
from ..batches import merges
from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..problem import holds


class Volume(NamedTuple):
    """The operands, batched; and the steps in depth, height and width."""

    input: torch.Tensor
    weight: torch.Tensor
    out: torch.Tensor | None
    stride: tuple[int, ...]
    padding: tuple[int, ...]  # zeros on both sides
    dilation: tuple[int, ...]
    same: bool  # the padding is "same"

    def extent(self, axis):
        """Inputs from the first to the last of an output."""
        return self.dilation[axis] * (self.weight.shape[2 + axis] - 1) + 1

    def outputs(self, axis):
        return (self.input.shape[2 + axis] + self.padding[axis] - self.extent(axis)) // self.stride[axis] + 1

    def has_one_tap(self, axis):
        """Whether each output is of one input, which is not padded."""
        return holds(self.weight.shape[2 + axis] == 1) and self.padding[axis] == 0

    def is_even(self, axis):
        """Whether there are as many zeros on one side as on the other."""
        return self.padding[axis] % 2 == 0


class Images(NamedTuple):
    """The operands as images, whose rows and columns are along `axes` of the volume, with taps `times` as far apart there."""

    operands: dict[str, torch.Tensor]
    axes: tuple[int, int]
    times: tuple[int, int]
    volume: Callable[[torch.Tensor], torch.Tensor]  # the result for that of the images


def depth_in_channels(v):
    if v.padding[0] or not holds(v.outputs(0) == 1):
        return "it needs a filter that spans the depth, and no padding there"
    slices = v.input[:, :, : v.extent(0) : v.dilation[0]]
    operands = _operands(v, _merged(slices, 1), _merged(v.weight, 1), lambda out: out[:, :, 0])
    return _images(operands, (1, 2), (1, 1), lambda result: result.unsqueeze(2))


def depth_in_batch(v):
    if not v.has_one_tap(0):
        return "it needs a filter of depth 1, and no padding there"
    slices = v.input[:, :, :: v.stride[0]].transpose(1, 2)
    operands = _operands(v, _merged(slices, 0), v.weight[:, :, 0], lambda out: _merged(out.transpose(1, 2), 0))
    return _images(operands, (1, 2), (1, 1), lambda result: result.unflatten(0, slices.shape[:2]).transpose(1, 2))


def columns_in_rows(v):
    if not (v.has_one_tap(2) and v.stride[1:] == (1, 1) and v.is_even(1)):
        return "it needs a filter of width 1, no padding there, rows and columns without a stride, and even padding of rows"
    width = v.input.shape[4]
    operands = _operands(v, _merged(v.input, 3), v.weight[..., 0], lambda out: _merged(out, 3))
    return _images(operands, (0, 1), (1, width), lambda result: result.unflatten(3, (-1, width)))


def rows_in_depth(v):
    if not (v.has_one_tap(1) and v.stride[:2] == (1, 1) and v.is_even(0)):
        return "it needs a filter of height 1, no padding there, slices and rows without a stride, and even padding of slices"
    height = v.input.shape[3]
    operands = _operands(v, _merged(v.input, 2), v.weight[:, :, :, 0], lambda out: _merged(out, 2))
    return _images(operands, (0, 2), (height, 1), lambda result: result.unflatten(2, (-1, height)))


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, precision=None, out=None):
    v, refusals = _volume(input, weight, out, stride, padding, dilation), {}
    for way in (depth_in_channels, depth_in_batch, columns_in_rows, rows_in_depth):
        images = way(v)
        if isinstance(images, str):
            refusals[way.__name__.replace("_", " ")] = images
            continue
        directions, taps = [*zip(images.axes, map(int, images.times))], weight.shape[2:]
        given = {
            "input": images.operands["input"],
            "weight": images.operands["weight"],
            "bias": bias,
            "stride": tuple(v.stride[axis] for axis in images.axes),
            "padding": "same" if v.same else tuple(v.padding[axis] // 2 * times for axis, times in directions),
            "dilation": tuple(v.dilation[axis] * times if taps[axis] > 1 else 1 for axis, times in directions),
            "groups": groups,
            "precision": precision,
            "activation": None,
            "residual": None,
            "out": images.operands.get("out"),
        }
        return given, images.volume if input.ndim == 5 else _unbatched(images)
    size = " x ".join(map(str, weight.shape[2:]))
    remedy = "Call torch.nn.functional.conv3d for it, or pass tensors of the strides that one of them needs."
    raise UnsupportedError(f"conv3d with a filter of {size} is no conv2d of views", refusals, remedy)


def _volume(input, weight, out, stride, padding, dilation):
    validate.viewable("input", input, (4, 5))
    validate.viewable("weight", weight, (5,))
    if out is not None:
        validate.viewable("out", out, (input.ndim,))
    stride, dilation = (validate.per_direction(n, t, 1, 3) for n, t in (("stride", stride), ("dilation", dilation)))
    same, taps = padding == "same", weight.shape[2:]
    if same and stride != (1, 1, 1):
        raise ArgumentError("padding", "'same'", "'same' with stride 1 only", "Pass the padding as numbers.")
    if any(holds(t == 0) for t in taps):
        raise ShapeError(
            "weight", f"shape {tuple(weight.shape)}", "a filter of at least 1 x 1 x 1", "Pass a weight with a tap."
        )
    if same:
        padding = tuple(apart * (t - 1) for apart, t in zip(dilation, taps))
    elif padding == "valid":
        padding = 0, 0, 0
    else:
        padding = tuple(2 * p for p in validate.per_direction("padding", padding, 0, 3))
    batched = (t if t is None or t.ndim == 5 else t.unsqueeze(0) for t in (input, weight, out))
    v = Volume(*batched, stride, padding, dilation, same)
    if any(holds(v.outputs(axis) < 1) for axis in range(3)):
        extent = " x ".join(str(v.extent(axis)) for axis in range(3))
        allowed = " x ".join(str(size + zeros) for size, zeros in zip(v.input.shape[2:], padding))
        raise ShapeError(
            "weight", f"a dilated filter of {extent}", f"at most the padded input's {allowed}", "Pass more padding."
        )
    return v


def _operands(v, input, weight, of_out):
    return {"input": input, "weight": weight} | ({} if v.out is None else {"out": of_out(v.out)})


def _images(operands, *others):
    """The Images, or why strides do not allow them."""
    missing = [name for name, t in operands.items() if t is None]
    return f"the strides of {' and '.join(missing)} allow no such view" if missing else Images(operands, *others)


def _unbatched(images):
    return lambda result: images.volume(result).squeeze(0)


def _merged(t, dim):
    """The tensor with a dimension and the next one as one; None where strides do not allow it."""
    return t.flatten(dim, dim + 1) if merges(t, dim) or holds(t.numel() == 0) else None
