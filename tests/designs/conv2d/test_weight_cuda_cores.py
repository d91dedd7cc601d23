"""The CUDA design conv2d_weight.implicit_gemm in fp32 by cp.async: edges of tiles and slices, shared tiles, accesses, code."""

import functools
import math

import pytest
import torch

from cuda_reference.conv2d_weight.implicit_gemm import DESIGN
from cuda_reference.conv2d_weight.parts.cuda_cores import LEAST, SPACE, cut_of
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
from tritonkernels.target import Target

from .test_weight_cuda import CASES
from .weight_gradients import check_tiles, operands

SMALL, WIDE = {"BM": 64, "BN": 64, "BL": 32}, {"BM": 128, "BN": 256, "BL": 32}
on_devices = pytest.mark.parametrize("device", DEVICES)


check = functools.partial(check_tiles, "implicit_gemm")

OWN = {
    "images of fewer positions than a slice": ((9, 4, 3, 3), (4, 4, 3, 3), {"padding": 1}),
    "a row of several slices": ((2, 4, 2, 75), (8, 4, 2, 3), {"padding": (0, 1)}),
    "padding beyond the image": ((2, 4, 5, 5), (8, 4, 1, 2), {"padding": (3, 4), "stride": (2, 3)}),
}


@pytest.mark.parametrize("name", CASES | OWN)
@on_devices
def test_sizes(name, device):
    available_on(LIBRARY, device)
    check(*operands("fp32", (CASES | OWN)[name], device=device), SMALL, WIDE)


@on_devices
def test_every_tile(device):
    available_on(LIBRARY, device)
    tiles = SPACE if device == "cuda" else SPACE[1:3]
    check(*operands("fp32", CASES["rows and columns of two large tiles"], device=device), *tiles)


@pytest.mark.parametrize("layout", (torch.clone, first_dim_inside, offset_by_one, padded, step_two, cropped))
@on_devices
def test_layouts(layout, device):
    """Operands that are copied into channels_last first."""
    available_on(LIBRARY, device)
    args, options = operands("fp32", CASES["channels that are no chunks, groups"], layout, device)
    check(args, options, SMALL)
    check((channels_last(args[0]), *args[1:]), options, SMALL)


@on_devices
def test_expanded_gradients(device):
    available_on(LIBRARY, device)
    (x, weight, grad), options = operands("fp32", CASES["groups"], device=device)
    for shape in ((1, 1, 1, 1), (*grad.shape[:2], 1, 1), (grad.shape[0], 1, 1, 1)):
        check((x, weight, random(*shape, device=device).expand(grad.shape)), options, SMALL)


def test_layouts_of_the_result():
    args, options = operands("fp32", CASES["groups"])
    results = []
    for layout in (torch.clone, channels_last, first_dim_inside, step_two):
        out = layout(torch.full(args[1], math.nan))
        call = prepare("conv2d_weight", *args, out=out, **options)
        results.append(LIBRARY.run(call, "implicit_gemm", {**SPACE[3], "BLOCKS": 5}))
    assert all(torch.equal(result, results[0]) for result in results)


@on_devices
def test_what_is_not_there_is_no_factor(device):
    """An infinity of the first position and of the last one."""
    available_on(LIBRARY, device)
    for which, place in ((0, 0), (2, 0), (0, -1), (2, -1)):
        args, options = operands("fp32", CASES["65 positions, a chunk more than a tile"], device=device)
        args[which][place, 3, place, place] = math.inf
        check(args, options, SMALL)


SHARED = ((2, 8, 34, 30), (8, 8, 3, 3), {"padding": 1})  # 64 slices of 2 tiles, or of 1
MANY = ((2, 8, 30, 32), (8, 8, 1, 1), {})  # 60 slices of a tile


@pytest.mark.parametrize(
    "case, tile, form",
    [
        (SHARED, SMALL | {"BLOCKS": 2}, (2, 1, 0)),  # whole tiles only
        (SHARED, SMALL | {"BLOCKS": 5}, (0, 2, 1)),  # heads, and tails of both in one block
        (SHARED, WIDE | {"BLOCKS": 5}, (0, 5, 0)),
        (MANY, SMALL | {"BLOCKS": 20}, (0, 20, 0)),  # added up in two rounds
    ],
)
def test_pieces(case, tile, form, monkeypatch):
    """The same bits in any order of threads."""
    args, options = operands("fp32", case)
    share = cut_of(prepare("conv2d_weight", *args, **options).problem, tile)
    assert (share.whole, share.heads, share.sharers) == form and share.head >= LEAST
    results = []
    for order in ("", "1", "2"):
        monkeypatch.setenv("SIMT_ORDER", order)
        results.append(run_checked(LIBRARY, "conv2d_weight", "implicit_gemm", *args, config=tile, **options)[0])
    assert all(torch.equal(result, results[0]) for result in results[1:])


def test_which_problems_have_these_tiles():
    def found(dtype, target, **options):
        x = channels_last(torch.empty(2, 64, 56, 56, dtype=dtype, device="meta"))
        problem = prepare("conv2d_weight", x, (64, 64, 1, 1), x, **options).problem
        return [config for config in DESIGN.configs(problem, Target.named(target)) if "BLOCKS" in config]

    assert len(found(torch.float32, "h200")) == len(found(torch.float32, "sm_80")) == 2 * len(SPACE)
    assert {c["BLOCKS"] for c in found(torch.float32, "h200") if c["BN"] == 256} == {132, 66}
    assert not found(torch.float32, "sm_75") and not found(torch.float64, "h200") and not found(torch.float16, "h200")
    assert not found(torch.float32, "h200", precision="tf32")


def test_accesses():
    """Copies and stores use the fewest possible sectors; slices have no bank conflicts; no races."""
    from cuda_reference.trace import trace

    args, options = operands("fp32", ((1, 64, 20, 16), (64, 64, 1, 1), {}))
    call = prepare("conv2d_weight", *args, **options)
    (traced,) = trace(*DESIGN.launches(call.problem, {**SPACE[3], "BLOCKS": 1}, *call.parts[0]))
    assert traced.races == ()
    slices = [x for x in traced.accesses if x.space == "shared" and x.width == 16]
    assert {x.kind for x in slices} == {"read", "write"}
    assert all(x.units == x.ideal_units for x in slices), [x for x in slices if x.units != x.ideal_units]
    copies = [x for x in traced.accesses if x.array in ("argument 0", "argument 1")]
    assert {x.width for x in copies} == {16} and all(x.units == x.ideal_units for x in copies)
    stores = [x for x in traced.accesses if x.kind == "write" and x.space == "global"]
    assert {x.width for x in stores} == {16} and all(x.units == x.ideal_units for x in stores)


@thorough
@nvcc.needed
def test_machine_code():
    """For every tile: the loop is FFMA, its slices come by cp.async, by 16 bytes."""
    args, options = operands("fp32", CASES["a chunk"])
    call = prepare("conv2d_weight", *args, **options)
    launches = []
    for tile in SPACE:
        launches += DESIGN.launches(call.problem, {**tile, "BLOCKS": 5}, *call.parts[0])
    compiled = nvcc.compiled(with_its_own(90), [launches[0].source.header], [launch.expression for launch in launches])
    codes = sass.read(compiled.cubin).values()
    assert len(codes) == len(launches) > 0
    for code in codes:
        loop = code.hot_loop()
        assert sass.count(loop, sass.LOCAL) == 0 and code.stack_bytes <= 8, code.name
        assert sass.share(loop, ("FFMA",)) >= 0.82, f"{code.name}: {loop}"
        assert loop["LDGSTS.E.BYPASS.128"] and sass.count(loop, ("BAR.SYNC",)) == 1, f"{code.name}: {loop}"
