"""The CUDA design conv2d.warp_specialized: edges of boxes, tiles and pieces, taps, layouts, orders, refusals, machine code."""

import dataclasses
import math

import pytest
import torch

from cuda_reference.conv2d.warp_specialized import DESIGN, SPACE, cut
from cuda_reference.launch import LIBRARY
from cuda_reference.toolchain import with_its_own
from perf.offline import sass
from tests import nvcc
from tests.harness import (
    DEVICES,
    available_on,
    channels_last,
    cropped,
    first_dim_inside,
    long,
    offset_by_one,
    padded,
    prepare,
    random,
    run_checked,
    step_two,
    thorough,
)
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

SIMT = Target.named("simt")
SMALL = {"BM": 64, "BN": 128, "CONSUMERS": 2}  # consumers side by side
PAIR = {"BM": 128, "BN": 128, "CLUSTER": 2}  # one above the other, in blocks that share filters
ALONE = {"BM": 128, "BN": 64, "CONSUMERS": 1}  # one with two wgmmas of 64 rows
on_devices = pytest.mark.parametrize("device", DEVICES)


def operands(case, layout=channels_last, device="cpu", dtype=torch.float16):
    """((input, weight, bias), options) of a case (image, weight, options); fp32 is multiplied as tf32."""
    image, weight, options = case
    x, filters = (layout(random(*shape, dtype=dtype, device=device)) for shape in (image, weight))
    options = options | ({"precision": "tf32"} if dtype == torch.float32 else {})
    return (x, filters, random(weight[0], dtype=dtype, device=device)), options


def check(args, options, *tiles):
    for tile in tiles:
        run_checked(LIBRARY, "conv2d", "warp_specialized", *args, config=tile, **options)


# Sizes around boxes of 64 channels, tiles, images and rows of images.
CASES = {
    "one of everything": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "63 positions": ((1, 64, 9, 7), (64, 64, 1, 1), {}),
    "65 positions, 65 filters, a chunk more than a box": ((1, 72, 5, 13), (65, 72, 1, 1), {}),
    "two tiles of both": ((2, 16, 9, 8), (136, 16, 3, 3), {"padding": 1}),
    "tiles over images": ((9, 8, 7, 7), (8, 8, 3, 3), {"padding": 1}),
    "32 channels, the half of a box": ((1, 32, 9, 8), (16, 32, 2, 3), {}),
    "33 channels more than a box": ((1, 97, 9, 8), (16, 97, 2, 1), {}),
    "strides and dilation": ((3, 24, 13, 17), (40, 24, 3, 2), {"stride": (2, 3), "dilation": (1, 4), "padding": (2, 0)}),
    "five by five, stride 3": ((2, 136, 14, 11), (24, 136, 5, 5), {"stride": 3, "padding": 2}),
    "one by one, stride": ((2, 16, 7, 9), (3, 16, 1, 1), {"stride": 2}),
    "channels that are no chunks": ((2, 11, 8, 9), (10, 11, 2, 3), {"padding": (1, 2)}),
    "filter larger than the image": ((1, 8, 2, 2), (8, 8, 5, 4), {"padding": 3}),
    "the longest reach": ((1, 8, 3, 200), (8, 8, 1, 3), {"dilation": (1, 127), "padding": (0, 128)}),
}  # fmt: skip


@pytest.mark.parametrize("layout", (channels_last, torch.clone))
@pytest.mark.parametrize("name", CASES)
@on_devices
def test_sizes(name, layout, device):
    available_on(LIBRARY, device)
    check(*operands(CASES[name], layout, device), SMALL, PAIR)


# And around boxes of 32.
CASES_OF_TF32 = CASES | {
    "31 channels": ((1, 31, 9, 7), (30, 31, 2, 1), {}),
    "33 channels, the last box mostly zeros": ((1, 33, 5, 13), (33, 33, 1, 2), {"padding": (0, 1)}),
    "48 channels, the half of a box": ((1, 48, 9, 8), (20, 48, 2, 1), {"stride": 2}),
    "52 channels, more than the half": ((1, 52, 9, 8), (4, 52, 1, 1), {}),
}


@pytest.mark.parametrize("layout", (channels_last, torch.clone))
@pytest.mark.parametrize("name", CASES_OF_TF32)
@on_devices
def test_sizes_of_tf32(name, layout, device):
    available_on(LIBRARY, device)
    check(*operands(CASES_OF_TF32[name], layout, device, torch.float32), SMALL, PAIR)


def between_neighbours(which, layout=channels_last, device="cpu"):
    """((input, weight, None), options, result) of 40 channels, one operand ones, the other between two numbers of tf32 and
    closer to the upper one."""
    values = [torch.ones(shape, device=device) for shape in ((1, 40, 9, 8), (8, 40, 1, 1))]
    values[which] += 3 * 2.0**-12
    return (*map(layout, values), None), {"precision": "tf32"}, 40 * (1 + 2.0**-10)


@pytest.mark.parametrize("layout", (channels_last, torch.clone))
@on_devices
def test_operands_are_rounded_to_tf32(layout, device):
    """wgmma would cut off what is below."""
    available_on(LIBRARY, device)
    for which in (0, 1):
        args, options, result = between_neighbours(which, layout, device)
        found = LIBRARY.run(prepare("conv2d", *args, **options), "warp_specialized", SMALL)
        assert (found == result).all(), which


OTHER_TYPES = torch.bfloat16, torch.float32


def check_type(dtype, device, *tiles):
    for layout in (channels_last, torch.clone):
        args, options = operands(CASES["strides and dilation"], layout, device, dtype)
        check(args, options, *tiles)
        check((*args[:2], None), options, tiles[0])


@pytest.mark.parametrize("dtype", OTHER_TYPES)
@on_devices
def test_other_types(dtype, device):
    available_on(LIBRARY, device)
    check_type(dtype, device, SMALL, ALONE)


@long(lambda: True)  # each case is kernels that nvcc builds, for 10 s
@pytest.mark.gpu
@pytest.mark.parametrize("tile", SPACE, ids=str)
@pytest.mark.parametrize("dtype", OTHER_TYPES)
def test_every_tile(dtype, tile):
    available_on(LIBRARY, "cuda")
    check_type(dtype, "cuda", tile)


@pytest.mark.parametrize(
    "tile, channels, filters, form",
    [
        (SMALL | {"BLOCKS": 6, "SHARES": True}, 72, 8, (6, 1, 2)),
        (PAIR | {"BLOCKS": 6, "SHARES": False}, 72, 136, (4, 0, 0)),
        (SMALL | {"BLOCKS": 64, "SHARES": True}, 112, 8, (0, 7, 14)),
        (PAIR | {"BLOCKS": 6, "SHARES": True}, 72, 8, (0, 2, 3)),
        (PAIR | {"BLOCKS": 64, "SHARES": True}, 112, 8, (0, 2, 4)),
        (ALONE | {"BLOCKS": 6, "SHARES": True}, 72, 8, (0, 4, 6)),
    ],
)
def test_pieces(tile, channels, filters, form, monkeypatch):
    """7 tiles of 8 slices, or 2 of a cluster, for up to 64 filters: the same bits in any order of threads."""
    args, options = operands(((1, channels, 21, 21), (filters, channels, 2, 2), {}))
    assert cut(prepare("conv2d", *args, **options).problem, {"CLUSTER": 1} | tile) == form
    results = []
    for order in ("", "1", "2"):
        monkeypatch.setenv("SIMT_ORDER", order)
        results.append(run_checked(LIBRARY, "conv2d", "warp_specialized", *args, config=tile, **options)[0])
    assert all(torch.equal(result, results[0]) for result in results[1:])


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize("layout", (torch.clone, first_dim_inside, offset_by_one, padded, step_two, cropped))
@on_devices
def test_layouts(layout, dtype, device):
    """Operands that TMA cannot read are copied into channels_last first; of tf32 also filters that lie across the reduction."""
    available_on(LIBRARY, device)
    (x, weight, bias), options = operands(CASES["strides and dilation"], layout, device, dtype)
    check((x, weight, bias), options, SMALL)
    check((channels_last(x), weight, bias), options, SMALL)
    check((x, channels_last(weight), bias), options, SMALL)


@on_devices
def test_expanded_operands(device):
    available_on(LIBRARY, device)
    (x, weight, bias), options = operands(CASES["tiles over images"], device=device)
    check((x[:1].expand(x.shape), weight[..., :1, :1].expand(weight.shape), bias[:1].expand(bias.shape)), options, SMALL)


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
def test_layouts_of_the_result(dtype):
    args, options = operands(CASES["strides and dilation"], dtype=dtype)
    shape = prepare("conv2d", *args, **options).result.shape
    results = []
    for layout in (torch.clone, channels_last, first_dim_inside, step_two, offset_by_one):
        out = layout(torch.full(shape, math.nan, dtype=args[0].dtype))
        results.append(LIBRARY.run(prepare("conv2d", *args, out=out, **options), "warp_specialized", SMALL))
    assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize("image", [(3, 8, 5, 5), (1, 8, 9, 15), (2, 8, 8, 16)])
def test_planes(image, dtype, monkeypatch):
    """Images of an odd size: pairs begin with the first position in every other one, and images within a box are no
    neighbours. Or of words of 16 bytes."""
    args, options = operands((image, (72, 8, 1, 1), {}), torch.clone, dtype=dtype)
    for order in ("", "1", "2"):
        monkeypatch.setenv("SIMT_ORDER", order)
        check(args, options, SMALL)


@on_devices
def test_gradient_of_the_input(device):
    """By phases of the stride, whose results are apart, and filters with taps that are not evenly spaced."""
    available_on(LIBRARY, device)
    for layout in (channels_last, torch.clone):
        weight = layout(random(16, 24, 3, 3, dtype=torch.float16, device=device))
        grad = layout(random(2, 16, 7, 5, dtype=torch.float16, device=device))
        args = (2, 24, 13, 9), weight, grad
        run_checked(LIBRARY, "conv2d_input", "warp_specialized", *args, 2, 1, config=SMALL)


@on_devices
def test_what_is_not_there_is_no_factor(device):
    """An infinity of the last position, next to which a box has what is behind the last image; and of the last filter."""
    available_on(LIBRARY, device)
    for which in (0, 1):
        args, options = operands(CASES["65 positions, 65 filters, a chunk more than a box"], device=device)
        args[which][-1, 3, -1, -1] = math.inf
        check(args, options, SMALL)


def test_refusals():
    def refusal(change, target=SIMT, dtype=torch.float16):
        args, options = operands(CASES["63 positions"], dtype=dtype)
        problem = prepare("conv2d", *args, **options).problem
        return DESIGN.refuses(dataclasses.replace(problem, **change), target)

    assert refusal({}) is None and refusal({}, Target.named("h200")) is None
    assert refusal({}, dtype=torch.float32) is None and "not ieee" in refusal({"precision": "ieee"}, dtype=torch.float32)
    assert "2 groups" in refusal({"groups": 2})
    assert "sm_80" in refusal({}, Target.named("a100")) and "32 bits" in refusal({"n": 2**26})
    for change in ({"stride": (1, 9)}, {"padding": (129, 0)}, {"dilation": (255, 1), "r": 2}):
        assert "TMA" in refusal(change), change
    args, options = operands(((0, 8, 5, 5), (8, 8, 3, 3), {}))
    with pytest.raises(UnsupportedError, match="no empty operand"):
        LIBRARY.run(prepare("conv2d", *args, **options), "warp_specialized")


@thorough
@nvcc.needed
@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize(
    "tile, name, layout",
    [(SPACE[0], "63 positions", torch.clone), (SPACE[-4], "33 channels more than a box", channels_last)],
)
def test_machine_code(tile, name, layout, dtype):
    """No spills; wgmmas of a slice under one arrival, with descriptors in uniform registers."""
    args, options = operands(CASES[name], layout, dtype=dtype)
    call = prepare("conv2d", *args, **options)
    *_, launch = DESIGN.launches(call.problem, tile | {"BLOCKS": 6, "SHARES": True}, *call.parts[0])
    (code,) = sass.read(nvcc.compiled(with_its_own(90), [launch.source.header], [launch.expression]).cubin).values()
    loop = code.hot_loop()
    assert code.stack_bytes == 0
    of_slice = 4 * tile["BM"] // tile["CONSUMERS"] // 64
    assert sass.count(loop, ("HGMMA",)) == of_slice * loop["WARPGROUP.ARRIVE"] > 0 and not sass.count(loop, ("R2UR",)), loop
