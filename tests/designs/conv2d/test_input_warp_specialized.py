"""The gradient of the input by both warp_specialized designs, which read the filter in place, its taps from last to first."""

import dataclasses
import math

import pytest
import torch

from cuda_reference.conv2d.warp_specialized import SPACE, shared_bytes
from cuda_reference.launch import LIBRARY as CUDA
from tests import gluon_threads
from tests.harness import DEVICES, available_on, channels_last, first_dim_inside, padded, prepare, random, run_checked
from tritonkernels.config import config_of
from tritonkernels.launch import LIBRARY as TRITON
from tritonkernels.numerics import judge
from tritonkernels.operations.conv2d.taps import lie_along

on_devices = pytest.mark.parametrize("device", DEVICES)
SMALL = {"BM": 64, "BN": 128, "CONSUMERS": 2}  # consumers side by side
PAIR = {"BM": 128, "BN": 128, "CLUSTER": 2}  # one above the other, in blocks that share two boxes of filters
ODD = {"BM": 128, "BN": 160, "STAGES": 5, "CLUSTER": 2}  # or three, the rows of each

# (size of the input, weight, options): sizes around boxes, chunks, tiles and phases.
CASES = {
    "one of everything": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "three by three": ((2, 72, 7, 9), (24, 72, 3, 3), {"padding": 1}),
    "channels that are no chunks": ((2, 11, 8, 9), (10, 11, 2, 3), {"padding": (1, 2)}),
    "tiles of filters": ((1, 136, 5, 7), (72, 136, 2, 1), {}),
    "a box and a half of gradients": ((1, 8, 9, 8), (97, 8, 1, 2), {}),
    "phases": ((2, 24, 13, 9), (16, 24, 3, 3), {"stride": 2, "padding": 1}),
    "five by five, stride 3": ((1, 16, 14, 11), (24, 16, 5, 5), {"stride": 3, "padding": 2}),
    "stride and dilation": ((1, 24, 13, 17), (40, 24, 3, 2), {"stride": (2, 3), "dilation": (1, 2), "padding": (2, 0)}),
    "phases without a tap": ((2, 16, 9, 8), (8, 16, 3, 3), {"stride": 2, "dilation": 2}),
    "one tap": ((2, 16, 5, 9), (24, 16, 1, 1), {}),
    "one tap, stride": ((2, 16, 7, 9), (8, 16, 1, 1), {"stride": 2}),
}  # fmt: skip

# Channels of the input in two boxes, in place (FILTERS_INSIDE) where they are whole chunks: size, weight, options, tile.
REST = {
    "129 channels": ((1, 129, 9, 8), (24, 129, 2, 1), {"padding": 1}, (128, 192, 4)),
    "192 channels": ((1, 192, 9, 8), (24, 192, 1, 2), {}, (128, 192, 4)),
    "193 channels": ((1, 193, 9, 8), (8, 193, 1, 1), {}, (128, 192, 4)),
    "136 channels, phases": ((1, 136, 13, 9), (16, 136, 3, 3), {"stride": 2, "padding": 1}, (128, 160, 4)),
    "96 channels": ((2, 96, 13, 9), (72, 96, 2, 2), {}, (256, 96, 4)),
    "97 channels": ((1, 97, 9, 8), (8, 97, 1, 2), {}, (128, 96, 4)),
}  # fmt: skip


def operands(name, layout=channels_last, device="cpu", dtype=torch.float16):
    """(input_size, weight, grad_output), options."""
    size, weight, options = (CASES | REST)[name][:3]
    x, filters = torch.empty(size, device="meta"), layout(random(*weight, dtype=dtype, device=device))
    grad = torch.nn.functional.conv2d(x, torch.empty(weight, device="meta"), **options)
    options = options | ({"precision": "tf32"} if dtype == torch.float32 else {})
    return (size, filters, layout(random(*grad.shape, dtype=dtype, device=device))), options


def launches(library, args, options, config, **changes):
    """(call, launches) of the design."""
    call = prepare("conv2d_input", *args, **options)
    (design,) = (design for design in library.designs("conv2d_input") if design.name == "warp_specialized")
    return call, list(design.launches(dataclasses.replace(call.problem, **changes), config, *call.parts[0]))


def check(args, options, tile=(64, 128, 4), seed=0, **changes):
    """Runs Triton's: the launch in Gluon by threads, the others in the interpreter."""
    numbers = dict(zip(("BLOCK_M", "BLOCK_N", "STAGES"), tile)) | {"SHARES": True, "PROGRAMS": 5}
    call, found = launches(TRITON, args, options, config_of(numbers, 4, 1), **changes)
    call.result.fill_(math.nan)
    for launch in found:
        if launch.name == "warp_specialized":
            gluon_threads.run(launch, seed)
        else:
            launch.run()
    verdict = judge(call.problem, call.result, *args, **options)
    assert verdict.ok, f"{call.problem}: error {verdict.error:.3g} above the bound {verdict.bound:.3g}"


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize("layout, how", [(channels_last, {}), (torch.clone, {"tile": (128, 64, 4), "wide": True})])
@pytest.mark.parametrize("name", CASES)
def test_sizes_in_gluon(name, layout, how, dtype):
    """Consumers side by side, and one above the other."""
    check(*operands(name, layout, dtype=dtype), **how)


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize("layout", (channels_last, torch.clone))
@pytest.mark.parametrize("name", REST)
def test_channels_of_two_boxes_in_gluon(name, layout, dtype):
    check(*operands(name, layout, dtype=dtype), REST[name][3])


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize("layout", (channels_last, torch.clone))
@pytest.mark.parametrize("name", CASES)
@on_devices
def test_sizes_in_cuda(name, layout, dtype, device):
    available_on(CUDA, device)
    args, options = operands(name, layout, device, dtype)
    for tile in (SMALL, PAIR):
        run_checked(CUDA, "conv2d_input", "warp_specialized", *args, config=tile, **options)


@on_devices
def test_blocks_that_share_rows_of_boxes(device):
    available_on(CUDA, device)
    args, options = operands("tiles of filters", device=device, dtype=torch.bfloat16)
    run_checked(CUDA, "conv2d_input", "warp_specialized", *args, config=ODD, **options)


WHOLE = {
    TRITON: config_of({"BLOCK_M": 64, "BLOCK_N": 128, "STAGES": 4, "SHARES": False, "PROGRAMS": 5}, 4, 1),
    CUDA: SPACE[0] | {"BLOCKS": 6, "SHARES": False},
}


@pytest.mark.parametrize("library", WHOLE, ids=lambda library: library.package)
def test_copies(library):
    """None in channels_last; else one launch for the filter and the gradient, for all phases. Filters of tf32 are to lie
    along K."""

    def names(name, layout, dtype=torch.float16):
        return [launch.name for launch in launches(library, *operands(name, layout, dtype=dtype), WHOLE[library])[1]]

    copy, product = "channels_last", "warp_specialized"
    assert names("three by three", channels_last) == [product]
    assert names("phases", channels_last) == [product] * 4
    assert names("one tap, stride", channels_last) == ["cleared", product]
    assert names("one tap", torch.clone) == [copy, product]  # of the gradient
    for layout in (torch.clone, first_dim_inside, padded):
        assert names("phases", layout) == [copy] + [product] * 4
    for layout in (channels_last, torch.clone):
        assert names("phases", layout, torch.float32) == [copy] + [product] * 4
    (size, weight, grad), options = operands("three by three", dtype=torch.float32)
    args = size, first_dim_inside(weight), grad
    assert [launch.name for launch in launches(library, args, options, WHOLE[library])[1]] == [product]


def test_boxes_of_every_tile_fit_in_shared_memory():
    """Across C filters are whole boxes of 64. Of one consumer two blocks share an SM, which has 228 KB."""
    for tile in SPACE:
        assert (3 - tile["CONSUMERS"]) * (shared_bytes(tile, across=True) + 1024) <= 228 * 1024, tile


@pytest.mark.parametrize("columns", [2, 3])
def test_filters_are_read_in_place_only_where_taps_are_evenly_apart(columns):
    """As a matrix for each tap: not the first two of three columns."""
    filters = channels_last(torch.empty(16, 64, 3, 3, dtype=torch.float16))
    assert lie_along(filters[..., :columns], 1) == (columns == 3)


@pytest.mark.parametrize("library", WHOLE, ids=lambda library: library.package)
def test_filters_of_groups_are_no_matrix_to_read_in_place(library):
    """One tap, by a design that reads a flipped filter."""
    weight, grad = random(6, 4, 1, 1), random(2, 6, 5, 7)
    run_checked(library, "conv2d_input", "implicit_gemm", (2, 8, 5, 7), weight, grad, groups=2)


@pytest.mark.parametrize("dtype, channels", [(torch.float16, 8), (torch.float32, 4)])
def test_filters_are_read_in_place_in_chunks_of_16_bytes(dtype, channels):
    for count in (channels, channels // 2, 3 * channels):
        filters = first_dim_inside(torch.empty(count, 8, 3, 3, dtype=dtype))
        assert lie_along(filters, 0) == (count % channels == 0), count
