"""conv2d's precision, and what implicit_gemm and pointwise promise beyond what every design's tests ask."""

import pytest
import torch

from tritonkernels import numerics

from .harness import prepare, random


@pytest.mark.parametrize("switch", ("ieee", "tf32"))
def test_the_precision_of_torch_is_that_of_its_convolutions(switch):
    convolution = torch.backends.cudnn.conv
    image, weight = torch.empty(1, 2, 5, 5), torch.empty(3, 2, 3, 3)
    before, convolution.fp32_precision = convolution.fp32_precision, switch
    try:
        assert prepare("conv2d", image, weight, precision="torch").problem.precision == switch
        assert prepare("conv2d", image, weight).problem.precision == "ieee"
    finally:
        convolution.fp32_precision = before


def test_the_bound_of_tf32_holds_where_an_input_is_smaller_than_tf32_can_tell_apart():
    """Within half of numerics' input_spacing of each tiny input, times the other, over the taps that lie inside."""
    image, weight = random(2, 4, 6, 7) * 1e-40, random(6, 2, 3, 2) * 1e4
    options = {"padding": (1, 2), "stride": (2, 1), "groups": 2, "precision": "tf32"}
    problem = prepare("conv2d", image, weight, **options).problem
    options.pop("precision")
    flushed = torch.zeros_like(image)
    exact = torch.nn.functional.conv2d(image, weight, **options)
    assert numerics.judge(problem, exact, image, weight, **options).ok
    spacing = numerics.MODES["tf32"].input_spacing
    off = torch.nn.functional.conv2d(image.double() + 0.49 * spacing, weight.double(), **options).float()
    assert numerics.judge(problem, off, image, weight, **options).ok
    assert not numerics.judge(problem, torch.nn.functional.conv2d(flushed, weight, **options), image, weight, **options).ok
