"""The map over channels and filter sizes of the conv2d design that Triton calls get, as a table for docs/conv_calls.md."""

import torch

from tritonkernels.conv2d import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

from ..show import table

CHANNELS = (1, 3, 6, 16, 32, 64, 128, 256)  # in and out
TAPS = (1, 3, 5, 7, 11, 15)  # of a square filter


def conv2d_regimes(target, dtype, layout, images, size):
    """A row for each number of channels: the design for each filter, padded to the size of the image, and its microseconds."""
    machine, dtype, images, size = Target.named(target), getattr(torch, dtype), int(images), int(size)
    memory = {"NCHW": torch.contiguous_format, "channels_last": torch.channels_last}[layout]

    def cell(channels, taps):
        shapes = (images, channels, size, size), (channels, channels, taps, taps)
        tensors = (torch.empty(shape, dtype=dtype, device="meta").to(memory_format=memory) for shape in shapes)
        problem = prepare(*tensors, padding=taps // 2).problem
        best = LIBRARY.ranking(problem, machine)[0]
        return f"{best.design.name} {best.estimate.seconds * 1e6:.3g}"

    headings = ["channels \\ filter", *(f"{taps} x {taps}" for taps in TAPS)]
    return table.markdown(headings, [[str(c), *(cell(c, taps) for taps in TAPS)] for c in CHANNELS])
