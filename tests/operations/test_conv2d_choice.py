"""Which design conv2d uses: one by the model's ranking, for every problem and GPU."""

import dataclasses

import pytest
import torch

from tests.harness import LIBRARIES, prepare
from tritonkernels.target import Target

H200 = Target.named("h200")
each_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)


def problem(input, weight, **options):
    return prepare("conv2d", *(torch.empty(shape, device="meta") for shape in (input, weight)), **options).problem


@each_library
def test_winograd_is_never_the_choice(library):
    """Its error bound is larger than conv2d's."""
    for size, channels in ((56, 64), (14, 256), (7, 512)):
        asked = problem((32, channels, size, size), (channels, channels, 3, 3), padding=1)
        assert "winograd" not in {design.name for design, *_ in library.ranking(asked, H200)}


@each_library
@pytest.mark.parametrize("shapes", [((0, 3, 8, 9), (4, 3, 3, 3)), ((2, 3, 8, 9), (0, 3, 3, 3)), ((2, 0, 8, 9), (4, 0, 3, 3))])
def test_empty_problems_have_a_design(library, shapes):
    assert library.choose(problem(*shapes), H200)


@each_library
def test_an_unknown_gpu_has_a_choice(library):
    unknown = dataclasses.replace(H200, name="new", dram_bandwidth=0.0, l2_bandwidth=0.0, peaks={})
    asked = problem((8, 64, 14, 14), (64, 64, 3, 3), padding=1)
    assert library.choose(asked, unknown)


@each_library
@pytest.mark.parametrize("precision", ("tf32", "ieee"))
def test_patch_embeddings_and_their_gradients_are_products(library, precision):
    forward = problem((16, 3, 224, 224), (768, 3, 16, 16), stride=16, precision=precision)
    image, grad = torch.empty(16, 3, 224, 224, device="meta"), torch.empty(16, 768, 14, 14, device="meta")
    backward = prepare("conv2d_weight", image, (768, 3, 16, 16), grad, stride=16, precision=precision).problem
    for asked in (forward, backward):
        assert library.choose(asked, H200)[0].name.startswith("matmul.")


@each_library
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    "sizes, stride, taps",
    [
        *(((8, 8), 2, 1), ((7, 8), 2, 1), ((8, 7), 2, 1), ((9, 9), 3, 1), ((2, 9), 3, 1), ((9, 8), 1, 1), ((8, 8), (1, 2), 1)),
        *(((8, 8), 2, 2), ((4, 12), 2, 2), ((2, 8), 2, 2), ((9, 9), 3, 3), ((8, 8), 3, 2)),
    ],
)
def test_products_of_each_image_are_counted(library, channels_last, sizes, stride, taps):
    """The gradient of an input by phases of one tap: where their results are apart, images are no batch of a product."""
    design = next(own for own in library.designs("conv2d_input") if own.name == "matmul.pipelined")
    call = input_gradient((5, 16, *sizes), (24, 16, taps, taps), stride, channels_last)
    config = next(iter(design.configs(call.problem, H200)))
    launches = list(design.launches(call.problem, config, *call.parts[0]))
    assert len(list(design.work(call.problem, config, H200))) == len(launches)


def input_gradient(image, weight, stride, channels_last=False, padding=0):
    down, across = (stride, stride) if isinstance(stride, int) else stride
    sizes = ((size + 2 * padding - taps) // step + 1 for size, taps, step in zip(image[2:], weight[2:], (down, across)))
    grad_output = torch.empty(image[0], weight[0], *sizes, dtype=torch.float16, device="meta")
    grad_output = grad_output.to(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
    filters = torch.empty(weight, dtype=torch.float16, device="meta")
    return prepare("conv2d_input", image, filters, grad_output, stride=stride, padding=padding)


@each_library
def test_a_filter_as_large_as_its_stride_is_not_a_product_for_each_image_and_tap(library):
    """1025 launches, where implicit_gemm has one or two for each of 16 phases."""
    call = input_gradient((64, 64, 32, 32), (128, 64, 4, 4), 4)
    design, config = library.choose(call.problem, H200)
    assert len(list(design.launches(call.problem, config, *call.parts[0]))) <= 33


@each_library
@pytest.mark.parametrize("channels_last", [False, True])
def test_an_image_of_one_pixel_has_one_product(library, channels_last):
    """Its phase has one, whatever the results that grad_output is of."""
    call = input_gradient((64, 512, 1, 1), (512, 512, 3, 3), 1, channels_last, padding=2)
    assert call.problem.p == 3
    design = next(own for own in library.designs("conv2d_input") if own.name == "matmul.pipelined")
    config = next(iter(design.configs(call.problem, H200)))
    assert len(list(design.work(call.problem, config, H200))) <= 2


@each_library
def test_a_product_of_each_image_is_not_chosen(library):
    """64 launches took 103 us on an H200, implicit_gemm 9."""
    grad_output = torch.empty(64, 24, 4, 4, dtype=torch.float16)
    call = prepare("conv2d_input", (64, 16, 7, 7), torch.empty(24, 16, 1, 1, dtype=torch.float16), grad_output, stride=2)
    design, _ = library.choose(call.problem, H200)
    assert not design.name.startswith("matmul.")
