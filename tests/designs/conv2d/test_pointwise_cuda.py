"""The CUDA design pointwise: which products a convolution becomes, for which layouts."""

import pytest
import torch

from cuda_reference.conv2d.pointwise import DESIGN
from cuda_reference.launch import LIBRARY
from tests.designs.conv2d.test_implicit_gemm_cuda import KINDS, channels_last, of_kind
from tests.harness import LAYOUTS, prepare, random, run_checked
from tritonkernels.target import Target

H200, SIMT = Target.named("h200"), Target.named("simt")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", (torch.clone, channels_last, *LAYOUTS))
def test_types_and_layouts(kind, layout):
    for image, filters in (((2, 16, 5, 8), (24, 16, 1, 1)), ((3, 7, 3, 5), (5, 7, 1, 1)), ((1, 70, 1, 66), (66, 70, 1, 1))):
        operands, precision = of_kind(kind, image, filters, layout=layout)
        bias = random(2 * filters[0], dtype=operands[0].dtype)[::2]
        run_checked(LIBRARY, "conv2d", "pointwise", *operands, bias, **precision)


@pytest.mark.parametrize("layout", (torch.clone, channels_last))
def test_no_channels_leave_the_bias(layout):
    input, weight, bias = (random(*shape, dtype=torch.float16) for shape in ((2, 0, 3, 4), (5, 0, 1, 1), (5,)))
    run_checked(LIBRARY, "conv2d", "pointwise", layout(input), layout(weight), bias)


@pytest.mark.parametrize("kind", ("fp16", "tf32"))
def test_by_wgmma(kind):
    (input, weight), precision = of_kind(kind, (2, 32, 4, 16), (64, 32, 1, 1))
    run_checked(LIBRARY, "conv2d", "pointwise", input, weight, config={"PRODUCT": "persistent"}, **precision)


def kernels(*operands, target=SIMT):
    call = prepare("conv2d", *operands)
    config = next(iter(DESIGN.configs(call.problem, target)))
    return [(launch.name, launch.grid) for launch in DESIGN.launches(call.problem, config, *call.parts[0])]


def test_operands_are_read_where_they_lie():
    """One product of all pixels with channels inside, one batch of images else; only what is not aligned is copied."""
    image, filters = random(2, 64, 8, 16, dtype=torch.float16), random(64, 64, 1, 1, dtype=torch.float16)
    assert kernels(channels_last(image), filters) == [("pipelined", (4,))]
    assert kernels(image, filters) == [("pipelined", (4,))]
    assert kernels(image[..., ::2], filters) == [("align", (2,)), ("pipelined", (2,))]
    assert kernels(channels_last(image)[..., 1:], filters) == [("pipelined", (8,))] * 2
    assert (
        kernels(image, filters, target=H200)[0][0] == "persistent" or kernels(image, filters, target=H200)[0][0] == "pipelined"
    )


@pytest.mark.parametrize(
    "image, filters, options, why",
    [
        ((1, 4, 5, 6), (4, 4, 1, 3), {"padding": (0, 1)}, "1 x 1"),
        ((1, 4, 5, 6), (4, 4, 1, 1), {"stride": 2}, "steps or padding"),
        ((1, 4, 5, 6), (4, 4, 1, 1), {"padding": 1}, "steps or padding"),
        ((1, 4, 5, 6), (4, 2, 1, 1), {"groups": 2}, "group"),
    ],
)
def test_refusals(image, filters, options, why):
    problem = prepare("conv2d", torch.empty(image), torch.empty(filters), **options).problem
    assert why in DESIGN.refuses(problem, H200)


def test_hopper_gets_wgmma_where_tiles_fill_it():
    def first(n, arch):
        operands = (torch.empty(*shape, dtype=torch.half, device="meta") for shape in ((n, 256, 56, 56), (64, 256, 1, 1)))
        return next(iter(DESIGN.configs(prepare("conv2d", *operands).problem, Target.named(arch))))["PRODUCT"]

    assert (first(32, "h200"), first(1, "h200"), first(32, "a100")) == ("persistent", "pipelined", "pipelined")
