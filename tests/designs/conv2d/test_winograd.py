"""winograd: both variants at the edges of their tiles, the products they save, their error bound, and their machine code."""

import itertools

import pytest
import torch

from cuda_reference.conv2d.winograd import PRODUCT_SOURCES, TRANSFORM_SOURCES
from cuda_reference.launch import LIBRARY as CUDA
from perf.offline import sass
from tests import nvcc
from tests.harness import (
    DEVICES,
    LAYOUTS,
    available_on,
    channels_last,
    prepare,
    random,
    run_checked,
    short,
    small_integers,
    thorough,
)
from tritonkernels import numerics
from tritonkernels.cook_toom import transform
from tritonkernels.design import as_dict
from tritonkernels.errors import UnsupportedError
from tritonkernels.launch import LIBRARY as TRITON
from tritonkernels.numerics import reference
from tritonkernels.operations.conv2d import points
from tritonkernels.operations.conv2d.points import images_at_once, product_at_points, refuses_winograd
from tritonkernels.target import Target

H200 = Target.named("h200")
VARIANTS = {2: {"OUTPUTS": 2}, 4: {"OUTPUTS": 4}}
on_devices = pytest.mark.parametrize("device", DEVICES)
both_packages = pytest.mark.parametrize("library", (CUDA, TRITON), ids=lambda library: library.package)
both_variants = pytest.mark.parametrize("outputs", VARIANTS)


# Triton's large tiles take the interpreter a second a call.
few_large_tiles = short(lambda library, outputs: library is CUDA or outputs == 2)


def call_of(library, outputs, *operands, **options):
    return run_checked(library, "conv2d", "winograd", *operands, config=VARIANTS[outputs], **options)


# The matrices.
@both_variants
def test_the_matrices_convolve(outputs):
    """y = A^T [(G g) * (B^T d)] is the correlation of d with g, for every pixel and tap: bilinear, so units suffice."""
    t = transform(outputs)
    for pixel, tap in itertools.product(range(t.points), range(3)):
        d, g = (torch.eye(n, dtype=torch.float64)[i] for n, i in ((t.points, pixel), (3, tap)))
        y = t.AT @ ((t.G @ g) * (t.BT @ d))
        exact = torch.stack([(d[i : i + 3] * g).sum() for i in range(outputs)])
        torch.testing.assert_close(y, exact, rtol=0, atol=1e-15)


def test_products_saved():
    """A tile needs (M + 2)^2 products per channel instead of 9 M^2: 2.25 and 4 times fewer; tiles are rounded up to 16."""
    problem = prepare("conv2d", random(1, 32, 64, 64), random(32, 32, 3, 3), padding=1).problem
    for outputs, saving in ((2, 2.25), (4, 4.0)):
        product = product_at_points(problem, outputs, problem.n)
        assert product.batch * product.m * product.n * product.k * saving == problem.flops / 2


# Results.
@both_packages
@both_variants
@on_devices
def test_edges_of_tiles(library, outputs, device, everything):
    """P and Q from 1 to 9, with and without padding; by the interpreter in `make test` every second P."""
    available_on(library, device)
    for size in range(1, 10, 1 if everything or library is CUDA else 2):
        operands = random(2, 3, size, 10 - size, device=device), random(5, 3, 3, 3, device=device), random(5, device=device)
        call_of(library, outputs, *operands, padding=1)
    call_of(library, outputs, random(1, 1, 3, 11, device=device), random(1, 1, 3, 3, device=device))


@short(lambda library, outputs, groups: library is CUDA or outputs == 2 or groups == 2)
@both_packages
@both_variants
@on_devices
@pytest.mark.parametrize("c, k, groups", [(1, 1, 1), (17, 9, 1), (70, 70, 1), (6, 10, 2), (5, 5, 5), (12, 4, 4)])
def test_channels_and_groups(library, outputs, device, c, k, groups):
    available_on(library, device)
    input, weight = random(2, c, 6, 7, device=device), random(k, c // groups, 3, 3, device=device)
    for layout in (lambda t: t, channels_last):
        call_of(library, outputs, layout(input), weight, random(k, device=device), groups=groups, padding=(0, 2))


@few_large_tiles
@both_packages
@both_variants
@on_devices
@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float64), ids=str)
def test_types(library, outputs, device, dtype):
    available_on(library, device)
    input, weight, bias = (random(*shape, dtype=dtype, device=device) for shape in ((2, 5, 9, 6), (7, 5, 3, 3), (7,)))
    call_of(library, outputs, input, weight, bias, padding=1)
    call_of(library, outputs, channels_last(input), channels_last(weight), padding=1)


@both_packages
@on_devices
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
def test_layouts(library, device, layout):
    available_on(library, device)
    input, weight, bias = random(3, 4, 9, 10, device=device), random(6, 4, 3, 3, device=device), random(12, device=device)[::2]
    call_of(library, 4, layout(input), layout(weight), bias, padding=1)


@both_packages
@on_devices
def test_a_flipped_filter_is_another(library, device):
    """Both the reference and the result differ."""
    available_on(library, device)
    input, weight = small_integers(1, 2, 8, 8, device=device), small_integers(3, 2, 3, 3, device=device)
    for taps in (weight, weight.flip(-1), weight.flip(-2), weight.mT.contiguous()):
        result, _ = call_of(library, 2, input, taps)
        assert torch.equal(result.double(), reference("conv2d", input, taps)), "dyadic transforms of integers are exact"


@few_large_tiles
@both_packages
@both_variants
@on_devices
def test_a_few_images_at_a_time(library, outputs, device, monkeypatch):
    """The last part has fewer; the parts share a workspace."""
    available_on(library, device)
    monkeypatch.setattr(points, "WORKSPACE", 2 * (outputs + 2) ** 2 * 16 * 7 * 4)
    for layout in (lambda t: t, channels_last):
        operands = layout(random(5, 3, 6, 9, device=device)), random(4, 3, 3, 3, device=device), random(4, device=device)
        problem = prepare("conv2d", *operands, padding=1).problem
        assert images_at_once(problem, outputs) == 2
        call_of(library, outputs, *operands, padding=1)


# The bound.
def computed(outputs, input, weight, damage=lambda name, matrix: matrix):
    """F(outputs x outputs, 3 x 3) by torch in fp32, a matrix damaged."""
    t = transform(outputs)
    AT, G, BT = (damage(name, getattr(t, name).clone()).float() for name in ("AT", "G", "BT"))
    tiles = input.unfold(-2, t.points, outputs).unfold(-2, t.points, outputs)
    sums = torch.einsum("ncpqij,kcij->nkpqij", BT @ tiles @ BT.T, G @ weight @ G.T)
    return (AT @ sums @ AT.T).transpose(-2, -3).flatten(-4, -3).flatten(-2)


@both_variants
def test_the_bound_is_kept_and_notices_every_entry_of_the_transforms(outputs):
    """An error of one part in 200 in any entry breaks the bound."""
    torch.manual_seed(0)
    input, weight = random(1, 16, 2 * outputs + 2, 2 * outputs + 2), random(4, 16, 3, 3)
    problem = prepare("conv2d", input, weight).problem

    def verdict(result):
        return numerics.judge(problem, result, input, weight, transform=transform(outputs))

    right = verdict(computed(outputs, input, weight))
    assert right.ok and right.error > 0
    for name in ("AT", "G", "BT"):
        for place in getattr(transform(outputs), name).nonzero().tolist():

            def damage(which, matrix, name=name, place=place):
                if which == name:
                    matrix[tuple(place)] *= 1.005
                return matrix

            assert not verdict(computed(outputs, input, weight, damage)).ok, (name, place)


def test_nan_reaches_its_tile_and_nothing_else():
    input, weight = random(1, 2, 18, 18), random(3, 2, 3, 3)
    input[0, 1, 4, 4] = torch.nan
    result, _ = call_of(CUDA, 4, input, weight)  # tiles of outputs 0 to 3 and 4 to 7 read pixel 4
    problem = prepare("conv2d", input, weight).problem

    def ok(result):
        return numerics.judge(problem, result, input, weight, transform=transform(4)).ok

    assert ok(result) and result[..., 8:, 8:].isfinite().all()
    assert not ok(torch.where(result.isfinite(), result, 0.0)), "what depends on the NaN must not be finite"
    result[..., -1, -1] = torch.nan
    assert not ok(result), "a tile without it must be finite"


# What it supports, and when it is chosen.
def test_it_refuses_in_a_sentence():
    cases = {
        "filters of 3 x 3, not 3 x 5": ((1, 4, 9, 9), (4, 4, 3, 5), {}),
        "not 2 x 1 and 1 x 1": ((1, 4, 9, 9), (4, 4, 3, 3), {"stride": (2, 1)}),
        "not 1 x 1 and 2 x 2": ((1, 4, 9, 9), (4, 4, 3, 3), {"dilation": 2}),
    }
    for sentence, (input, weight, options) in cases.items():
        assert sentence in refuses_winograd(prepare("conv2d", random(*input), random(*weight), **options).problem, H200)
    assert refuses_winograd(prepare("conv2d", random(1, 4, 9, 9), random(4, 4, 3, 3), padding=7).problem, H200) is None
    huge, filters = torch.empty(1, 8, 2**17, 2**16, device="meta"), torch.empty(8, 8, 3, 3, device="meta")
    with pytest.raises(UnsupportedError, match="the most is 2\\^32"):
        CUDA.choose(prepare("conv2d", huge, filters, padding=1).problem, H200, "winograd")


def big(images, size, channels):
    meta = (torch.empty(shape, device="meta") for shape in ((images, channels, size, size), (channels, channels, 3, 3)))
    return prepare("conv2d", *meta, padding=1).problem


def test_the_workspace_is_a_gigabyte_at_most():
    problem = big(4096, 56, 64)
    for outputs in VARIANTS:
        images = images_at_once(problem, outputs)
        product = product_at_points(problem, outputs, images)
        assert 100 < images < 4096
        assert 4 * product.batch * (product.k + product.m) * product.n <= points.WORKSPACE


@pytest.mark.parametrize("first, asked", [(4, (32, 56, 64)), (4, (8, 14, 256)), (4, (1, 56, 64)), (2, (1, 7, 512))])
def test_the_faster_variant_is_predicted_to_be(first, asked):
    """On an H200. Unasked, a call gets the one that was timed. Nobody has timed both of (1, 14, 256)."""
    problem = big(*asked)
    for library in (CUDA, TRITON):
        fastest = min(library.ranking(problem, H200, "winograd"), key=lambda choice: choice.cost)
        assert as_dict(fastest.config)["OUTPUTS"] == first


# Machine code.
@thorough
@nvcc.needed
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_the_product_is_arithmetic_and_the_transforms_stay_in_registers(architecture):
    sources = PRODUCT_SOURCES[torch.float32], TRANSFORM_SOURCES[torch.float32]
    headers = [source.header for source in sources]
    kernels = [name for source in sources for name in source.expressions]
    codes = sass.read(nvcc.compiled(architecture.removeprefix("sm_"), headers, kernels).cubin).values()
    assert len(codes) == len(kernels) and all(code.stack_bytes == 0 for code in codes)
    products = [code for code in codes if "winograd_product" in code.name]
    assert len(products) == 6
    for code in products:
        least = 0.8 if "Li8ELi8ELi3" in code.name else 0.65  # 64 multiply-adds a thread and k, or 32
        assert code.registers <= 128 and sass.share(code.hot_loop(), ("FFMA",)) >= least, code.name


@on_devices
@both_packages
@both_variants
def test_its_gradient_is_judged_as_a_convolution(library, device, outputs):
    """With groups and uneven padding: the convolution of grad_output with the flipped filter has the same bound."""
    available_on(library, device)
    weight, grad = random(6, 2, 3, 3, device=device), random(2, 6, 7, 13, device=device)
    geometry, config, bias = {"padding": (0, 2), "groups": 2}, VARIANTS[outputs], random(4, device=device)
    result, right = run_checked(
        library, "conv2d_input", "winograd", (2, 4, 9, 11), weight, grad, bias=bias, config=config, **geometry
    )
    result[1, 3, 8, 10] += 0.01
    call = prepare("conv2d_input", (2, 4, 9, 11), weight, grad, bias=bias, out=result, **geometry)
    wrong = library.judge(call, "winograd", config, (2, 4, 9, 11), weight, grad, bias=bias, **geometry)
    filters = torch.cat([w.transpose(0, 1).flip(2, 3) for w in weight.chunk(2)])
    call = prepare("conv2d", grad, filters, bias, out=result, padding=(2, 0), groups=2)
    same = library.judge(call, "winograd", config, grad, filters, bias, padding=(2, 0), groups=2)
    assert right.ok and not wrong.ok
    assert (wrong.error, wrong.bound) == pytest.approx((same.error, same.bound), rel=1e-6)
