"""The CUDA design conv2d_weight.warp_specialized: edges of boxes, taps and pieces, layouts, orders, refusals, machine code."""

import dataclasses
import functools
import math

import pytest
import torch

from cuda_reference.conv2d_weight.warp_specialized import DESIGN, SPACE, bands_and_cut
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
    offset_by_one,
    padded,
    prepare,
    random,
    run_checked,
    step_two,
    thorough,
)
from tritonkernels.errors import UnsupportedError
from tritonkernels.operations.conv2d_weight.pieces import LEAST, cut
from tritonkernels.target import Target

from .weight_gradients import check_tiles, operands

SIMT = Target.named("simt")
SMALL, LARGE = {"BM": 64, "BN": 128}, {"BM": 128, "BN": 256}  # consumers side by side, and one above the other
on_devices = pytest.mark.parametrize("device", DEVICES)


check = functools.partial(check_tiles, "warp_specialized")

# Sizes around boxes of 64 positions and 64 channels, tiles, images and rows of images.
CASES = {
    "one of everything": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "63 positions, rows and columns of two tiles": ((1, 136, 9, 7), (136, 136, 1, 1), {}),
    "64 positions, a box": ((1, 64, 8, 8), (64, 64, 1, 1), {}),
    "65 positions, a chunk more than a box": ((1, 72, 5, 13), (72, 72, 1, 1), {}),
    "taps in one tile, over images": ((5, 8, 7, 7), (8, 8, 3, 3), {"padding": 1}),
    "strides and dilation": ((3, 24, 13, 17), (40, 24, 3, 2), {"stride": (2, 3), "dilation": (1, 4), "padding": (2, 0)}),
    "channels that are no chunks": ((2, 11, 8, 9), (10, 11, 2, 3), {"padding": (1, 2)}),
    "filter larger than the image": ((1, 8, 2, 2), (8, 8, 5, 4), {"padding": 3}),
    "bands of five groups, and of three": ((2, 72, 6, 5), (80, 9, 3, 3), {"padding": 1, "groups": 8}),
    "groups of more than a box": ((1, 140, 9, 8), (134, 70, 1, 2), {"groups": 2}),
    "groups of one channel": ((1, 80, 5, 7), (160, 1, 2, 2), {"groups": 80, "stride": 2}),
    "the longest reach": ((1, 8, 3, 200), (8, 8, 1, 3), {"dilation": (1, 127), "padding": (0, 128)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@on_devices
def test_sizes(name, device):
    available_on(LIBRARY, device)
    args, options = operands("fp16", CASES[name], device=device)
    check(args, options, *([SMALL] if options.get("groups", 1) > 2 else [SMALL, LARGE]))


@on_devices
def test_bf16_and_every_tile(device):
    available_on(LIBRARY, device)
    tiles = SPACE if device == "cuda" else (SMALL,)
    check(*operands("bf16", CASES["strides and dilation"], device=device), *tiles)


SHARED = ((2, 8, 34, 30), (8, 8, 3, 3), {"padding": 1})  # 32 slices of 5 or 3 tiles; one begins where a row does
SHARED_GROUPS = ((2, 72, 34, 30), (80, 9, 3, 3), {"padding": 1, "groups": 8})  # and of 5 or 3 tiles in each of two bands


@pytest.mark.parametrize(
    "tile, form",
    [
        (SMALL | {"BLOCKS": 5}, (5, 1, 0)),  # whole tiles only
        (LARGE | {"BLOCKS": 5}, (0, 1, 2)),  # heads, and tails that two blocks share
        (SMALL | {"BLOCKS": 2}, (4, 2, 0)),  # whole tiles, then heads of one
        (LARGE | {"BLOCKS": 20}, (0, 4, 0)),
    ],
)
def test_pieces(tile, form, monkeypatch):
    """The same bits in any order of threads."""
    args, options = operands("fp16", SHARED)
    _, share = bands_and_cut(prepare("conv2d_weight", *args, **options).problem, tile)
    assert (share.whole, share.heads, share.sharers) == form
    results = []
    for order in ("", "1", "2"):
        monkeypatch.setenv("SIMT_ORDER", order)
        results.append(run_checked(LIBRARY, "conv2d_weight", "warp_specialized", *args, config=tile, **options)[0])
    assert all(torch.equal(result, results[0]) for result in results[1:])


@on_devices
def test_pieces_of_bands(device):
    """Whole tiles, then heads and tails of one."""
    available_on(LIBRARY, device)
    args, options = operands("fp16", SHARED_GROUPS, device=device)
    check(args, options, {"BM": 64, "BN": 256} | ({"BLOCKS": 5} if device == "cpu" else {}))


def test_many_parts_are_added_up_in_two_rounds():
    args, options = operands("fp16", ((2, 8, 80, 66), (8, 8, 1, 1), {}))
    tile = SMALL | {"BLOCKS": 20}
    assert bands_and_cut(prepare("conv2d_weight", *args, **options).problem, tile)[1].parts > 16
    check(args, options, tile)


def test_cuts():
    """All slices once, in runs of equal length: at most a slice or LEAST of them more than the mean."""
    for tiles, slices, blocks in (
        (114, 813, 132),
        (1, 784, 132),
        (150, 813, 132),
        (133, 900, 132),
        (300, 900, 132),
        (27, 999, 66),
        (3, 100, 7),
    ):
        found = cut(tiles, slices, blocks)
        assert found.blocks <= blocks and found.left < blocks and found.whole % blocks == 0
        assert found.heads * found.head + found.tail >= slices and (found.heads - 1) * found.head < slices
        assert found.longest <= tiles * slices / blocks + LEAST
        if found.sharers:
            assert LEAST <= found.tail <= found.left * found.tail // found.sharers, "at most two have the same tail"
    assert cut(5, 10, 132).heads == 1, "too little to share"


@pytest.mark.parametrize("layout", (torch.clone, first_dim_inside, offset_by_one, padded, step_two, cropped))
@on_devices
def test_layouts(layout, device):
    """Operands that TMA cannot read are copied into channels_last first."""
    available_on(LIBRARY, device)
    args, options = operands("fp16", CASES["strides and dilation"], layout, device)
    check(args, options, SMALL)
    check((channels_last(args[0]), *args[1:]), options, SMALL)


@on_devices
def test_expanded_gradients(device):
    available_on(LIBRARY, device)
    (x, weight, grad), options = operands("fp16", CASES["taps in one tile, over images"], device=device)
    for shape in ((1, 1, 1, 1), (*grad.shape[:2], 1, 1), (1, *grad.shape[1:])):
        check((x, weight, channels_last(random(*shape, dtype=x.dtype, device=device)).expand(grad.shape)), options, SMALL)


def test_layouts_of_the_result():
    args, options = operands("fp16", CASES["strides and dilation"])
    results = []
    for layout in (torch.clone, channels_last, first_dim_inside, step_two):
        out = layout(torch.full(args[1], math.nan, dtype=args[0].dtype))
        results.append(LIBRARY.run(prepare("conv2d_weight", *args, out=out, **options), "warp_specialized", SMALL))
    assert all(torch.equal(result, results[0]) for result in results)


@on_devices
def test_what_is_not_there_is_no_factor(device):
    """An infinity of the first position, and of the last one, next to which a box has what is behind the last image."""
    available_on(LIBRARY, device)
    cases = "65 positions, a chunk more than a box", "bands of five groups, and of three"
    for case, which, place in ((case, which, place) for case in cases for which in (0, 2) for place in (0, -1)):
        args, options = operands("fp16", CASES[case], device=device)
        args[which][place, 3, place, place] = math.inf
        check(args, options, SMALL)


def test_refusals():
    def refusal(change, target=SIMT, kind="fp16", case=CASES["64 positions, a box"]):
        args, options = operands(kind, case)
        return DESIGN.refuses(dataclasses.replace(prepare("conv2d_weight", *args, **options).problem, **change), target)

    assert refusal({}) is None and refusal({}, Target.named("h200")) is None
    assert refusal({"groups": 2}) is None and "tf32" in refusal({}, kind="tf32")
    assert "sm_80" in refusal({}, Target.named("a100"))
    for change in ({"stride": (1, 9)}, {"padding": (129, 0)}, {"dilation": (255, 1), "r": 2}, {"n": 2**26}):
        assert "TMA" in refusal(change), change
    args, options = operands("fp16", ((0, 8, 5, 5), (8, 8, 3, 3), {}))
    with pytest.raises(UnsupportedError, match="no empty operand"):
        LIBRARY.run(prepare("conv2d_weight", *args, **options), "warp_specialized")


@thorough
@nvcc.needed
def test_machine_code():
    """For a tile of each kind: no spills, wgmmas of a slice under one arrival, with descriptors in uniform registers; and the
    producer's copies of pixels."""
    args, options = operands("fp16", CASES["64 positions, a box"])
    call = prepare("conv2d_weight", *args, **options)
    for tile in (SPACE[3], SPACE[5]):
        *_, launch = DESIGN.launches(call.problem, tile | {"BLOCKS": 5}, *call.parts[0])
        (code,) = sass.read(nvcc.compiled(with_its_own(90), [launch.source.header], [launch.expression]).cubin).values()
        loop = code.hot_loop()
        assert code.stack_bytes == 0
        assert sass.count(loop, ("HGMMA",)) == 4 * loop["WARPGROUP.ARRIVE"] > 0 and not sass.count(loop, ("R2UR",)), loop
