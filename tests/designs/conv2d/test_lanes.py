"""Tiles that are turned round so that lanes lie where addresses are close. Each Triton turns others, to the same numbers."""

import pytest

from tests.harness import channels_last, random, run_checked
from tritonkernels.conv2d.parts import lanes
from tritonkernels.language.triton import tl
from tritonkernels.launch import LIBRARY

CALLS = {  # (design, format): groups, channels, output channels
    ("implicit_gemm", "NCHW"): (1, 5, 6),
    ("implicit_gemm", "channels_last"): (1, 5, 6),
    ("grouped", "NCHW"): (3, 9, 6),
    ("depthwise_channels", "channels_last"): (5, 5, 5),
}


@pytest.mark.parametrize("first", (False, True))
@pytest.mark.parametrize("design, format", CALLS)
def test_whichever_dimension_ties_go_to(monkeypatch, design, format, first):
    monkeypatch.setattr(lanes, "TIES_GO_FIRST", tl.constexpr(first))
    groups, c, k = CALLS[design, format]
    image, weight, bias = random(2, c, 5, 7), random(k, c // groups, 3, 2), random(k)
    image = channels_last(image) if format == "channels_last" else image
    run_checked(LIBRARY, "conv2d", design, image, weight, bias, padding=(1, 0), groups=groups)
