"""Convolutions of patches that do not overlap: the copies of patches and filters in both packages, and products of them."""

import importlib
from unittest import mock

import pytest
import torch

from tests.harness import (
    DEVICES,
    LIBRARIES,
    a_third,
    assert_poisoned_outside,
    available_on,
    channels_last,
    cropped,
    first_dim_inside,
    offset_by_one,
    prepare,
    random,
    run_checked,
    sentinel,
    short,
    step_two,
)
from tritonkernels.language import two_copies
from tritonkernels.launch import LIBRARY as TRITON
from tritonkernels.operations.conv2d.unfolded import Copy, copied, operands
from tritonkernels.target import Target

MARGIN = 64  # elements of poison around a matrix
each_package = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
on_devices = pytest.mark.parametrize("device", DEVICES)

# image, filters, options. Tiles have 8 to 32 columns of words of 2 to 16 bytes.
PATCHES = {
    "4 x 4, pixels left over": ((2, 3, 13, 22), (5, 3, 4, 4), {"stride": 4}),
    "14 x 14, words of 4 bytes": ((2, 3, 29, 44), (3, 3, 14, 14), {"stride": 14}),
    "16 x 16, words of 16 bytes": ((1, 3, 32, 50), (4, 3, 16, 16), {"stride": 16}),
    "2 x 2 of many channels": ((2, 40, 6, 8), (9, 40, 2, 2), {"stride": 2}),
    "rows and columns apart": ((3, 5, 9, 12), (7, 5, 3, 2), {"stride": (4, 3)}),
    "taps apart": ((2, 3, 9, 13), (4, 3, 2, 3), {"stride": (4, 5), "dilation": (3, 2)}),
    "one tap, a stride": ((2, 9, 7, 9), (6, 9, 1, 1), {"stride": (2, 3)}),
    "one channel": ((2, 1, 6, 9), (3, 1, 3, 3), {"stride": 3}),
    "a row of taps": ((2, 6, 4, 12), (5, 6, 1, 4), {"stride": (1, 4)}),
    "a column of taps": ((2, 6, 12, 5), (5, 6, 4, 1), {"stride": (4, 1)}),
    "filters as large as the image": ((5, 7, 6, 5), (4, 7, 6, 5), {}),
    "several tiles of rows": ((3, 2, 60, 64), (3, 2, 2, 2), {"stride": 2}),
}
LAYOUTS = {
    "NCHW": (torch.clone, torch.clone),
    "channels_last": (channels_last, channels_last),
    "channels_last, filters not": (channels_last, torch.clone),
    "filters in channels_last alone": (torch.clone, channels_last),
    "cropped": (cropped, step_two),
    "CHWN": (first_dim_inside, first_dim_inside),
    "every other pixel": (step_two, offset_by_one),
    "expanded images": (lambda t: t[:1].expand(t.shape), torch.clone),
    "expanded channels": (lambda t: t[:, :1].expand(t.shape), first_dim_inside),
}
TYPES = torch.float16, torch.bfloat16, torch.float32, torch.float64


def laid_out(case, layout, dtype, device):
    image, filters, options = PATCHES[case]
    operands = (random(*shape, dtype=dtype, device=device) for shape in (image, filters))
    return *(lie(t) for lie, t in zip(LAYOUTS[layout], operands)), options


def unfold(library, *copies):
    return library.served["conv2d"].arrange.unfold(*copies)


def check_copies(library, *tensors):
    """Each tensor's six dimensions are a matrix, between untouched memory; columns behind the last are untouched, too."""
    copies, buffers = [], []
    for t in tensors:
        rows, columns = t.shape[:3].numel(), t.shape[3:].numel()
        pitch = -(-columns // 16) * 16
        buffer = torch.full((rows * pitch + 2 * MARGIN,), sentinel(t.dtype), dtype=t.dtype, device=t.device)
        copies.append(Copy(t, buffer[MARGIN:-MARGIN].view(rows, pitch)))
        buffers.append(buffer)
    unfold(library, *copies).run()
    for (t, matrix), buffer in zip(copies, buffers):
        columns = t.shape[3:].numel()
        assert torch.equal(matrix[:, :columns], t.reshape(-1, columns)), (t.shape, t.stride())
        outside = torch.full_like(matrix[:, columns:], sentinel(t.dtype))
        assert torch.equal(matrix[:, columns:].isnan(), outside.isnan())
        assert_poisoned_outside(buffer, slice(MARGIN, -MARGIN))


def windows(image, filters, options):
    """The patches of NCHW images and of filters, in both orders."""
    call = prepare("conv2d", image, filters, **options)
    extent = [(taps - 1) * apart + 1 for taps, apart in zip(filters.shape[2:], call.problem.dilation)]
    found = image.unfold(2, extent[0], call.problem.stride[0]).unfold(3, extent[1], call.problem.stride[1])
    found = found[..., :: call.problem.dilation[0], :: call.problem.dilation[1]].permute(0, 2, 3, 1, 4, 5)
    return found, found.permute(0, 1, 2, 4, 5, 3)


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32), ids=str)
@pytest.mark.parametrize("case", PATCHES)
@each_package
@on_devices
def test_copies(library, case, dtype, device, everything):
    """Alone, and before and after another one, in one launch."""
    available_on(library, device)
    other = random(2, 1, 3, 1, 5, 7, dtype=dtype, device=device)
    for layout in a_third(LAYOUTS, list(PATCHES).index(case) + dtype.itemsize // 4, everything):
        *pair, options = laid_out(case, layout, dtype, device)
        crs, rsc = windows(*pair, options)
        check_copies(library, crs)
        check_copies(library, rsc, other)
        check_copies(library, other, crs)


def test_doubles():
    for library in LIBRARIES:
        *pair, options = laid_out("rows and columns apart", "channels_last", torch.float64, "cpu")
        check_copies(library, *windows(*pair, options))


def test_offsets_of_64_bits():
    with mock.patch.object(two_copies, "needs_wide_offsets", lambda *tensors: True):
        for case in ("4 x 4, pixels left over", "rows and columns apart"):
            *pair, options = laid_out(case, "channels_last", torch.float16, "cpu")
            check_copies(TRITON, *windows(*pair, options))
    for width, is_wide in ((2**24, True), (2**8, False)):
        image, filters = (torch.empty(2, 2, *size, device="meta") for size in ((8, width), (4, 4)))
        copies = operands(prepare("conv2d", image, filters, stride=4).problem, image, filters)[2]
        assert unfold(TRITON, *copies).values["WIDE"] == is_wide


def first_that_takes(library, problem, device):
    """The first of matmul's designs that accepts the problem here, but one fragment at a time."""
    target = library.target(torch.device(device))
    for design in library.designs(problem.op):
        is_wanted = design.name.startswith("matmul.") and design.name != "matmul.naive"
        if is_wanted and not design.refuses(problem, target):
            return design.name
    raise AssertionError("no design of matmul takes it")


@short(lambda dtype, case: dtype == torch.float16 or case[0] in "41o")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("case", [case for case in PATCHES if "tiles of rows" not in case])
@each_package
@on_devices
def test_products_of_patches(library, case, dtype, device, everything):
    available_on(library, device)
    for layout in a_third(LAYOUTS, list(PATCHES).index(case) + TYPES.index(dtype), everything):
        image, filters, options = laid_out(case, layout, dtype, device)
        bias = random(2 * filters.shape[0], dtype=dtype, device=device)[::2]
        for precision in ("ieee", "tf32") if dtype == torch.float32 else (None,):
            given = options | {"precision": precision}
            design = first_that_takes(library, prepare("conv2d", image, filters, bias, **given).problem, device)
            run_checked(library, "conv2d", design, image, filters, bias, **given)
        run_checked(library, "conv2d", design, image[:1], filters, **given)


@short(lambda dtype, case: case[0] != "1" and (dtype == torch.float16 or (dtype == torch.float32 and case[0] in "4a")))
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("case", [case for case in PATCHES if "one tap" not in case and "tiles of rows" not in case])
@each_package
@on_devices
def test_gradients_of_weights(library, case, dtype, device, everything):
    """tf32 has both operands along the positions."""
    available_on(library, device)
    for layout in a_third(LAYOUTS, list(PATCHES).index(case) + TYPES.index(dtype), everything):
        image, filters, options = laid_out(case, layout, dtype, device)
        result = prepare("conv2d", image, filters, **options).result
        grad = LAYOUTS[layout][0](random(*result.shape, dtype=dtype, device=device))
        for precision in ("ieee", "tf32") if dtype == torch.float32 else (None,):
            given = options | {"precision": precision}
            call = prepare("conv2d_weight", image, tuple(filters.shape), grad, **given)
            design = first_that_takes(library, call.problem, device)
            run_checked(library, "conv2d_weight", design, image, tuple(filters.shape), grad, **given)


@each_package
@on_devices
def test_a_gradient_of_any_strides(library, device):
    available_on(library, device)
    image, grad = random(2, 3, 8, 13, device=device), random(2, 5, 2, 3, device=device)
    wanted = torch.nn.grad.conv2d_weight(image.double(), (5, 3, 4, 4), grad.double(), stride=4)
    for lie in (torch.clone, channels_last, cropped, first_dim_inside, step_two):
        for precision in ("ieee", "tf32"):
            out = lie(torch.full_like(wanted, torch.nan, dtype=torch.float32, memory_format=torch.contiguous_format))
            call = prepare("conv2d_weight", image, (5, 3, 4, 4), grad, stride=4, precision=precision, out=out)
            library.run(call, first_that_takes(library, call.problem, device))
            torch.testing.assert_close(out.double(), wanted, rtol=2e-3, atol=2e-2)


@each_package
@on_devices
def test_no_images_have_no_gradient(library, device):
    available_on(library, device)
    image, grad = random(0, 3, 8, 8, dtype=torch.float16, device=device), random(0, 5, 2, 2, dtype=torch.float16, device=device)
    result, _ = run_checked(library, "conv2d_weight", "matmul.pipelined", image, (5, 3, 4, 4), grad, stride=4)
    assert not result.any()


@each_package
@on_devices
@pytest.mark.parametrize("stride", (1, 2))
@pytest.mark.parametrize("layout", (torch.clone, channels_last))
def test_the_gradient_of_one_tap(library, device, layout, stride):
    """Pixels in channels_last are rows as they lie, in tf32 as well: only others are copied."""
    available_on(library, device)
    for dtype, options in ((torch.float16, {}), (torch.float32, {"precision": "tf32"}), (torch.float32, {})):
        image, grad = (
            layout(random(2, c, *size, dtype=dtype, device=device))
            for c, size in ((24, (9, 12)), (16, (9 // stride + stride - 1, 12 // stride)))
        )
        call = prepare("conv2d_weight", image, (16, 24, 1, 1), grad, stride=stride, **options)
        design = first_that_takes(library, call.problem, device)
        run_checked(library, "conv2d_weight", design, image, (16, 24, 1, 1), grad, stride=stride, **options)
        chosen, config = library.choose(call.problem, library.target(torch.device(device)), design)
        names = [launch.name for tensors in call.parts for launch in chosen.launches(call.problem, config, *tensors)]
        assert ("unfold" in " ".join(names)) == (layout is torch.clone or stride > 1), names


@each_package
@on_devices
def test_empty_operands(library, device):
    available_on(library, device)
    for image, filters in (((0, 3, 8, 8), (5, 3, 4, 4)), ((2, 0, 8, 8), (5, 0, 4, 4)), ((2, 3, 8, 8), (0, 3, 4, 4))):
        operands = (random(*shape, dtype=torch.float16, device=device) for shape in (image, filters, filters[:1]))
        run_checked(library, "conv2d", "matmul.pipelined", *operands, stride=4)


@each_package
@on_devices
def test_a_result_of_any_strides(library, device):
    available_on(library, device)
    image, filters = (channels_last(random(*s, dtype=torch.float16, device=device)) for s in ((2, 3, 8, 13), (5, 3, 4, 4)))
    wanted = torch.nn.functional.conv2d(image.double(), filters.double(), stride=4)
    for lie in (torch.clone, channels_last, cropped, first_dim_inside, step_two):
        out = lie(torch.full_like(wanted, torch.nan, dtype=torch.float16, memory_format=torch.contiguous_format))
        call = prepare("conv2d", image, filters, stride=4, out=out)
        library.run(call, first_that_takes(library, call.problem, device))
        torch.testing.assert_close(out.double(), wanted, rtol=2e-3, atol=2e-2)


@each_package
@on_devices
def test_repeated_calls_and_transforms(library, device):
    """A repeated call, which runs its plan, unfolds again; gradients and vmap are calls of the same operations."""
    available_on(library, device)
    package = importlib.import_module(library.package)
    for _ in range(4):
        image, filters = (random(*s, device=device).requires_grad_() for s in ((2, 3, 8, 13), (5, 3, 4, 4)))
        wanted = torch.nn.functional.conv2d(image.double(), filters.double(), stride=4)
        result = package.conv2d(image.detach(), filters.detach(), stride=4, design="matmul.split_k", precision="tf32")
        torch.testing.assert_close(result.double(), wanted, rtol=2e-3, atol=2e-2)
    grads = torch.autograd.grad(package.conv2d(image, filters, stride=4).square().sum(), (image, filters))
    for grad, other in zip(grads, torch.autograd.grad(wanted.square().sum(), (image, filters))):
        torch.testing.assert_close(grad, other, rtol=1e-4, atol=1e-4)
    of_each = torch.vmap(lambda one: package.conv2d(one, filters.detach(), stride=4))(image.detach())
    torch.testing.assert_close(of_each.double(), wanted.detach(), rtol=1e-4, atol=1e-4)


def names_of(library, image, filters, **options):
    """The launches of a convolution by matmul.pipelined on an A100."""
    call = prepare("conv2d", image, filters, **options)
    design = {d.name: d for d in library.designs("conv2d")}["matmul.pipelined"]
    config = next(iter(design.configs(call.problem, Target.named("sm_80"))))
    return [launch.name for launch in design.launches(call.problem, config, *call.parts[0])]


@each_package
def test_patches_that_lie_in_rows_are_not_copied(library):
    def half(*shape):
        return random(*shape, dtype=torch.float16)

    assert names_of(library, half(8, 16, 4, 4), half(16, 16, 4, 4)) == ["pipelined"], "an image is a row"
    of_rows = channels_last(half(2, 16, 8, 32)), channels_last(half(16, 16, 1, 4))
    assert names_of(library, *of_rows, stride=(1, 4)) == ["pipelined"], "so are four pixels"
    assert names_of(library, half(2, 16, 8, 32), half(16, 16, 1, 4), stride=(1, 4)) == ["unfold", "pipelined"]
    assert names_of(library, half(2, 16, 8, 32), half(16, 16, 2, 4), stride=(2, 4)) == ["unfold", "pipelined"]


def test_filters_are_copied_where_their_rows_are_not_aligned():
    for dtype, layout, filters_layout, count in (
        (torch.float16, torch.clone, torch.clone, 2),  # rows of 1176 bytes
        (torch.float32, torch.clone, torch.clone, 1),
        (torch.float32, channels_last, channels_last, 1),
        (torch.float32, channels_last, torch.clone, 2),  # in another order
    ):
        image, filters = layout(random(2, 3, 28, 28, dtype=dtype)), filters_layout(random(8, 3, 14, 14, dtype=dtype))
        problem = prepare("conv2d", image, filters, stride=14).problem
        assert len(operands(problem, image, filters)[2]) == count
        elements = image.numel() + (count - 1) * filters.numel()
        assert layout is not filters_layout or copied(problem)[0].dram == 2 * elements * dtype.itemsize


@pytest.mark.parametrize("case, widest, size", [
    ("4 x 4, pixels left over", 16, (4, 4)),
    ("14 x 14, words of 4 bytes", 16, (4, 4)),
    ("16 x 16, words of 16 bytes", 16, (4, 4)),
    ("2 x 2 of many channels", 16, (4, 16)),
    ("2 x 2 of many channels", 8, (4, 8)),
    ("one tap, a stride", 16, (2, 2)),
])  # fmt: skip
def test_words_are_as_wide_as_runs_allow(case, widest, size):
    """Bytes of a word of 16-bit types, in NCHW and in channels_last."""
    for layout, wanted in zip(("NCHW", "channels_last"), size):
        *pair, options = laid_out(case, layout, torch.float16, "cpu")
        found = windows(*pair, options)[layout == "channels_last"]
        assert Copy(found, torch.empty(1, 64)).words(widest).size == wanted


def test_words_begin_where_the_tensor_does():
    filters = random(4, 3, 16, 16, dtype=torch.float16)
    for skipped, size in ((0, 16), (8, 16), (4, 8), (1, 2)):
        image = random(1, 3, 32, 64, dtype=torch.float16)[..., skipped : skipped + 32]
        assert Copy(windows(image, filters, {"stride": 16})[0], torch.empty(1, 64)).words(16).size == size


@pytest.mark.parametrize("layout", ("NCHW", "channels_last"))
def test_accesses(layout):
    """No races; lanes write whole lines, and read each sector of a patch's rows once or twice a request."""
    from cuda_reference.launch import LIBRARY as CUDA
    from cuda_reference.trace import trace

    image, filters = (LAYOUTS[layout][0](random(*shape, dtype=torch.float16)) for shape in ((2, 3, 64, 64), (4, 3, 16, 16)))
    problem = prepare("conv2d", image, filters, stride=16).problem
    (traced,) = trace(unfold(CUDA, *operands(problem, image, filters)[2]))
    assert traced.races == ()
    accesses = [x for x in traced.accesses if x.space == "global"]
    assert {(x.kind, x.width) for x in accesses} == {("read", 16), ("write", 16)}
    assert all(x.units == x.ideal_units for x in accesses), accesses
