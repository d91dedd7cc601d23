"""Strides, paddings and dilations up to the bound on them, on small images (test_huge_numbers.py: beyond it)."""

import pytest
import torch

from tests.harness import designs, only, random, sentinel
from tests.harness import prepare as prepared

IMAGE, FILTER, GROUPS = (1, 4, 9, 8), (4, 1, 3, 3), 4  # which every design takes but those of other filters
TALL = (4, 1, 1027, 1)  # the last tap is 2^30 + 8 rows from the first where they are 1046532 apart
FAR = (2**31 - 1 - 9 - 1024) // 1026  # with a padding and a stride, or a dilation, of this the reach is just below 2^31
NEAR = ("winograd", "register_blocked", "depthwise_channels", "grouped", "warp_specialized")  # stage or unroll what taps reach
AT_BOUND = {
    "stride": {"stride": 2**21 - 2},
    "padding and stride": {"padding": FAR, "stride": FAR},
    "padding and dilation": {"padding": FAR, "dilation": FAR},
    "padding": {"padding": (511 * 2**20, 0), "stride": (2**20, 1), "dilation": (2047, 1)},
    "taps": {"padding": (2**29, 0), "dilation": (1046532, 1)},
}


def convolved(x, weight, stride=1, padding=0, dilation=1):
    """conv2d with a filter a channel, tap by tap: torch's own writes the padding out."""

    def reads(dim, tap):
        step, before, apart = (v if isinstance(v, int) else v[dim] for v in (stride, padding, dilation))
        size, taps = x.shape[2 + dim], weight.shape[2 + dim]
        outputs = (size + 2 * before - apart * (taps - 1) - 1) // step + 1
        at = torch.arange(outputs) * step - before + tap * apart
        return at.clamp(0, size - 1), (at >= 0) & (at < size)

    total = 0
    for r in range(weight.shape[2]):
        for s in range(weight.shape[3]):
            (h, rows), (w, cols) = reads(0, r), reads(1, s)
            total = total + x[:, :, h][..., w] * (rows[:, None] & cols) * weight[:, 0, r, s][:, None, None]
    return total


@only(lambda library, name: name != "taps" or library.package == "cuda_reference")  # the interpreter's take seconds
@pytest.mark.parametrize("name", AT_BOUND)
@pytest.mark.parametrize("library, op, design", designs("conv2d", "conv2d_input", "conv2d_weight"))
def test_up_to_the_bound(library, op, design, name):
    options = AT_BOUND[name] | {"groups": GROUPS}
    x, weight = random(*IMAGE), random(*(TALL if name == "taps" else FILTER))
    exact_x, exact_weight = x.double().requires_grad_(), weight.double().requires_grad_()
    expected = convolved(exact_x, exact_weight, **AT_BOUND[name])
    grad = random(*expected.shape)
    of_x, of_weight = torch.autograd.grad(expected, (exact_x, exact_weight), grad.double())
    args, expected = {
        "conv2d": ((x, weight), expected),
        "conv2d_input": ((x.shape, weight, grad), of_x),
        "conv2d_weight": ((x, weight.shape, grad), of_weight),
    }[op]
    out = torch.full_like(expected, sentinel(torch.float32), dtype=torch.float32)
    call = prepared(op, *args, out=out, **options)
    chosen = {d.name: d for d in library.designs(op)}[design]
    if chosen.refuses(call.problem, library.target(out.device)) is not None:
        assert (
            design in NEAR or "." in design or (op, design) == ("conv2d_weight", "depthwise")
        )  # sums of all taps in registers
        return
    library.run(call, design)
    torch.testing.assert_close(out.double(), expected.detach(), rtol=1e-5, atol=1e-5)
