"""conv2d beyond what every operation's tests ask: types."""

import pytest
import torch

from .harness import DEVICES, available_on, designs, first_dim_inside, random, run_checked

on_devices = pytest.mark.parametrize("device", DEVICES)
every_design = pytest.mark.parametrize("library, op, design", designs("conv2d"))

# Groups, padding and aligned rows; steps and dilation; an image of one piece of 128 bits.
CALLS = (
    ((2, 4, 9, 16), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    ((1, 3, 13, 24), (5, 3, 2, 3), {"stride": (2, 1), "dilation": (1, 2)}),
    ((1, 1, 4, 8), (1, 1, 4, 8), {}),
)


def channels_last(t):
    return t.contiguous(memory_format=torch.channels_last)


@every_design
@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float64), ids=str)
@on_devices
def test_types(library, op, design, device, dtype):
    available_on(library, device)
    for (image, filters, options), layout in zip(CALLS, (lambda t: t, channels_last, first_dim_inside)):
        input, weight, bias = (random(*shape, dtype=dtype, device=device) for shape in (image, filters, filters[:1]))
        run_checked(library, op, design, layout(input), weight, bias, **options)
