"""conv2d's `grouped`: its lanes, runs, vectors and packed taps, beyond the tests of every design."""

import json

import pytest
import torch
import triton

from perf.offline import representative_calls, unusual_calls
from tests.compiler import printed
from tests.harness import DEVICES, available_on, channels_last, prepare, random, run_checked, run_where_taken, short
from tritonkernels import explanation, numerics
from tritonkernels.conv2d.parts.runs import best_run, extent
from tritonkernels.errors import UnsupportedError
from tritonkernels.launch import LIBRARY
from tritonkernels.operations.conv2d.shapes import COLUMN_ROWS, COLUMN_TAPS
from tritonkernels.target import Target

on_devices = pytest.mark.parametrize("device", DEVICES)
DESIGNS = {d.name: d for d in LIBRARY.designs("conv2d")}
GROUPED = DESIGNS["grouped"]
GPUS = [Target.named(name) for name in ("sm_80", "sm_90", "sm_100", "sm_120")]


def nchw(t):
    return t


def one_element_further(t):
    """channels_last, one element past an aligned address."""
    pixels = t.permute(0, 2, 3, 1)
    moved = torch.empty(t.numel() + 1, dtype=t.dtype, device=t.device)[1:].view(pixels.shape).copy_(pixels)
    return moved.permute(0, 3, 1, 2)


def every_other_pixel(t):
    """channels_last, with pixels whole vectors apart and rows not."""
    n, c, h, w = t.shape
    wide = torch.full((n, h, 2 * w + 1, c + 4), torch.nan, dtype=t.dtype, device=t.device)
    wide.view(n, h, -1)[:, :, : 2 * w * (c + 4)].view(n, h, w, 2, c + 4)[:, :, :, 0, :c] = t.permute(0, 2, 3, 1)
    return wide[:, :, : 2 * w : 2, :c].permute(0, 3, 1, 2)


# Channels per group, in and out: whole lanes and vectors, half ones, odd ones, one; a whole run, a partial one, one row.
@pytest.mark.parametrize("channels, outputs", [(4, 4), (6, 10), (3, 5), (4, 1), (1, 12)])
@pytest.mark.parametrize("layout", (nchw, channels_last))
@on_devices
def test_channels_of_a_group(device, layout, channels, outputs):
    available_on(LIBRARY, device)
    for groups, height in ((1, 1), (3, 7)):
        image = layout(random(2, groups * channels, height, 5, device=device))
        weight, bias = random(groups * outputs, channels, 3, 3, device=device), random(groups * outputs, device=device)
        run_checked(LIBRARY, "conv2d", "grouped", image, weight, bias, padding=1, groups=groups)


@pytest.mark.parametrize("steps, dilation", [(2, 1), (1, 2), (3, 2), (5, 7)])
@pytest.mark.parametrize("layout", (nchw, channels_last))
@on_devices
def test_runs_slide_for_every_stride(device, layout, steps, dilation):
    """Along H, where steps are unrolled, and along W, where they are not."""
    available_on(LIBRARY, device)
    image, weight = random(1, 8, 23, 19, device=device), random(8, 4, 3, 2, device=device)
    for stride, apart in (((steps, 1), (dilation, 3)), ((1, steps), (2, dilation))):
        options = {"stride": stride, "dilation": apart, "padding": (2, 1), "groups": 2}
        run_checked(LIBRARY, "conv2d", "grouped", layout(image), weight, **options)
        for design in ("depthwise", "depthwise_channels", "grouped"):
            taken = run_where_taken(LIBRARY, "conv2d", design, layout(image), weight[:, :1], **(options | {"groups": 8}))
            assert taken or design == "depthwise_channels", "which takes no long columns"


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float64), ids=str)
@pytest.mark.parametrize("layout", (nchw, channels_last, one_element_further, every_other_pixel))
@on_devices
def test_vectors_of_every_type_aligned_and_not(device, layout, dtype):
    available_on(LIBRARY, device)
    for channels in (4, 2):
        image, weight = (random(*s, dtype=dtype, device=device) for s in ((2, 3 * channels, 9, 6), (12, channels, 2, 3)))
        run_checked(LIBRARY, "conv2d", "grouped", layout(image), channels_last(weight), stride=(2, 1), groups=3)


@pytest.mark.parametrize("kt, run, lanes", [(1, 3, 2), (4, 5, 2), (8, 2, 4)])
@pytest.mark.parametrize("layout", (nchw, channels_last))
@on_devices
def test_any_lanes(device, layout, kt, run, lanes):
    """A program whose lanes have one, two or more groups, lanes with some of their channels outside, programs without work."""
    available_on(LIBRARY, device)
    image, weight, bias = (random(*s, device=device) for s in ((2, 12, 6, 5), (21, 4, 3, 3), (21,)))
    call = prepare("conv2d", layout(image), weight, bias, padding=1, groups=3)
    call.result.fill_(torch.nan)
    config = triton.Config({"RUN": run, "BLOCK": 16, "LANES": lanes, "KT": kt}, num_warps=2, num_stages=1)
    for launch in GROUPED.launches(call.problem, config, *call.parts[0]):
        launch.run()
    verdict = numerics.judge(call.problem, call.result, image, weight, bias, padding=1, groups=3)
    assert verdict.ok, verdict


@on_devices
def test_depthwise_of_long_columns_in_several_blocks(device):
    """Several blocks of channels and of runs, with columns too long to be unrolled."""
    available_on(LIBRARY, device)
    image, weight = random(1, 72, 45, 35, device=device), random(72, 1, 9, 2, device=device)
    run_checked(LIBRARY, "conv2d", "depthwise", channels_last(image), weight, groups=72)


def problem(image, weight, **options):
    return prepare("conv2d", torch.empty(image, device="meta"), torch.empty(weight, device="meta"), **options).problem


def test_refusals_name_what_cannot_be_unrolled():
    target = GPUS[1]
    for weight, options, why in (
        ((4, 4, COLUMN_TAPS + 1, 1), {}, "taps of a column"),
        ((4, 4, 3, 1), {"dilation": (COLUMN_ROWS // 2, 1)}, "rows"),
    ):
        asked = problem((1, 4, 60, 8), weight, **options)
        assert why in GROUPED.refuses(asked, target)
        with pytest.raises(UnsupportedError, match=why):
            LIBRARY.choose(asked, target, "grouped")
    assert GROUPED.refuses(problem((1, 4, 60, 8), (4, 4, COLUMN_TAPS, 1)), target) is None
    assert GROUPED.refuses(problem((1, 4, 60, 8), (4, 4, 3, 1), dilation=((COLUMN_ROWS - 1) // 2, 1)), target) is None


def test_runs_waste_few_rows_and_unroll_few():
    def run(p, **options):
        return best_run(problem((1, 4, p + 2, 8), (4, 4, 3, 3), **options), 8)

    assert [run(p) for p in (7, 14, 28, 56, 64, 3, 1)] == [7, 7, 7, 8, 8, 3, 1]
    for steps in (1, 4, 9, 30):
        asked = problem((1, 4, 200, 8), (4, 4, 3, 3), stride=steps)
        assert extent(best_run(asked, 8), asked) <= COLUMN_ROWS


@pytest.mark.parametrize("target", GPUS, ids=lambda target: target.name)
def test_configs_are_whole_warps_and_unique(target):
    for call in (*representative_calls("conv2d"), *unusual_calls("conv2d")):
        found = [(config.kwargs, config.num_warps) for config in GROUPED.configs(call.problem, target)]
        assert found and all(found.count(one) == 1 for one in found)
        assert all(tile["BLOCK"] * tile["LANES"] == 32 * warps or tile["BLOCK"] == 1 for tile, warps in found)


# The machine code for ResNeXt's groups: vector loads, no shared memory, and mostly multiply-adds.
COMPILE = """
import json, sys, torch
from perf.offline import sass
from perf.offline import compile_launch
from tritonkernels.conv2d import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

(design,) = (d for d in LIBRARY.designs("conv2d") if d.name == "grouped")
architecture, layout, (channels, size, steps) = *sys.argv[1:3], map(int, sys.argv[3:])
image = torch.empty(32, 32 * channels, size, size, device="meta").to(memory_format=getattr(torch, layout))
weight = torch.empty(32 * channels, channels, 3, 3, device="meta")
call = prepare(image, weight, padding=1, stride=steps, groups=32)
target = Target.named(architecture)
config = next(iter(design.configs(call.problem, target)))
_, launch = design.launches(call.problem, config, *call.parts[0])
kernel = compile_launch(launch, target)
(code,) = sass.read(kernel.asm["cubin"]).values()
stores = [text.split()[0] for _, text in code.instructions if text.startswith("STG")]
print(json.dumps([code.hot_loop(), kernel.metadata.shared, code.stack_bytes, stores]))
"""


@short(lambda architecture, layout, channels: (architecture, layout, channels) == ("sm_90", "channels_last", 8))
@pytest.mark.parametrize("architecture", ("sm_80", "sm_90"))
@pytest.mark.parametrize("layout", ("channels_last", "contiguous_format"))
@pytest.mark.parametrize("channels, size, stride", ((4, 56, 1), (8, 56, 2), (32, 7, 1)))
def test_the_hot_loop_is_arithmetic_and_its_loads_are_vectors(architecture, layout, channels, size, stride):
    code = printed(COMPILE, architecture, layout, *map(str, (channels, size, stride)))
    loop, shared_bytes, stack_bytes, stores = json.loads(code)
    is_last = layout == "channels_last"
    loads = {opcode: n for opcode, n in loop.items() if opcode.startswith(("LDG", "LDS", "LDL"))}
    taps = {opcode for opcode in loads if ".128" in opcode}
    assert shared_bytes == 0 and stack_bytes <= 8
    assert loop["FFMA"] >= (0.55 if is_last else 0.45) * sum(loop.values()), loop
    assert loop["FFMA"] >= (9 if is_last else 7) * sum(loads.values()), loads
    assert taps and (not is_last or taps == set(loads)), loads
    assert not is_last or {"128" in store for store in stores} == {True}, stores


@pytest.mark.parametrize("design", ("depthwise", "grouped"))
@pytest.mark.parametrize("taps, stride", [((3, 3), 2), ((5, 2), 1)])
@on_devices
def test_every_config_for_one_filter_per_channel(device, taps, stride, design):
    available_on(LIBRARY, device)
    operands = random(2, 6, 11, 9, device=device), random(6, 1, *taps, device=device), random(6, device=device)
    options = {"padding": 1, "stride": stride, "groups": 6}
    asked, target = prepare("conv2d", *operands, **options).problem, LIBRARY.target(operands[0].device)
    for config in DESIGNS[design].configs(asked, target):
        run_checked(LIBRARY, "conv2d", design, *operands, config=config, **options)


def test_taps_of_one_filter_per_channel_are_packed():
    image, weight = torch.empty(32, 32, 112, 112, device="meta"), torch.empty(32, 1, 3, 3, device="meta")
    report = explanation.explain(LIBRARY, "conv2d", image, weight, padding=1, groups=32, design="grouped", target="h200")
    assert report["kernels"] == ["filters", "grouped"]
