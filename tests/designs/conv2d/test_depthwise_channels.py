"""conv2d's `depthwise_channels`: its runs, columns and packed taps, of filters of any size, and its machine code."""

import json

import pytest
import torch

from tests.compiler import printed
from tests.harness import DEVICES, available_on, channels_last, prepare, random, run_checked, short, step_two
from tritonkernels import numerics
from tritonkernels.config import config_of
from tritonkernels.conv2d.parts.run_space import MOST_KEPT
from tritonkernels.conv2d.parts.runs import DEPTHWISE_ROWS, extent
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

on_devices = pytest.mark.parametrize("device", DEVICES)
DESIGN = next(d for d in LIBRARY.designs("conv2d") if d.name == "depthwise_channels")
H200 = Target.named("h200")
FILTERS = (13, 13), (9, 9), (13, 3), (1, 31), (31, 1), (5, 5), (3, 3)


def nchw(t):
    return t


def problem(image, taps, layout=channels_last, **options):
    channels = image[1]
    operands = layout(torch.empty(image, device="meta")), torch.empty(channels, 1, *taps, device="meta")
    return prepare("conv2d", *operands, groups=channels, **options).problem


@pytest.mark.parametrize("taps", FILTERS)
@pytest.mark.parametrize("layout", (nchw, channels_last, step_two))
@on_devices
def test_filters_of_any_size(device, layout, taps):
    """Planes with an edge of a run, rows and columns outside on every side, channels in whole vectors and not."""
    available_on(LIBRARY, device)
    for channels, size in ((8, (33, 31)), (5, (13, 32))):
        image, weight = layout(random(1, channels, *size, device=device)), random(channels, 1, *taps, device=device)
        options = {"padding": (taps[0] // 2, taps[1] // 2), "groups": channels}
        run_checked(LIBRARY, "conv2d", DESIGN.name, image, weight, random(channels, device=device), **options)


@pytest.mark.parametrize("stride, dilation, padding", [((2, 1), 1, (6, 0)), ((1, 2), (1, 2), (0, 7)), (3, (2, 1), 4)])
@pytest.mark.parametrize("layout", (nchw, channels_last))
@on_devices
def test_strides_and_dilations_of_large_filters(device, layout, stride, dilation, padding):
    available_on(LIBRARY, device)
    image, weight = layout(random(2, 6, 29, 30, device=device)), random(6, 1, 11, 9, device=device)
    options = {"stride": stride, "dilation": dilation, "padding": padding, "groups": 6}
    run_checked(LIBRARY, "conv2d", DESIGN.name, image, weight, **options)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float64), ids=str)
@pytest.mark.parametrize("layout", (nchw, channels_last))
@on_devices
def test_types_of_large_filters(device, layout, dtype):
    available_on(LIBRARY, device)
    image, weight = layout(random(1, 4, 12, 13, dtype=dtype, device=device)), random(4, 1, 9, 7, dtype=dtype, device=device)
    run_checked(LIBRARY, "conv2d", DESIGN.name, image, channels_last(weight), padding=(4, 3), groups=4)


@pytest.mark.parametrize("layout", (nchw, channels_last))
@on_devices
def test_gradients_of_large_filters(device, layout):
    """With a stride, of several phases, whose filters are shorter."""
    available_on(LIBRARY, device)
    weight = random(5, 1, 11, 9, device=device)
    for stride in (1, 2):
        grad = layout(random(1, 5, 20 // stride, 18 // stride, device=device))
        options = {"stride": stride, "padding": (5, 4), "groups": 5}
        run_checked(LIBRARY, "conv2d_input", DESIGN.name, (1, 5, 20, 18), weight, grad, **options)


@pytest.mark.parametrize("packed", ({}, {"PACKED": True}), ids=("gathered", "packed"))
@pytest.mark.parametrize("run, block, block_k, turns", [(1, 32, 8, 1), (5, 16, 4, 2), (14, 64, 1, 1), (8, 8, 16, 3)])
@pytest.mark.parametrize("layout", (nchw, channels_last))
@on_devices
def test_any_tile(device, layout, run, block, block_k, turns, packed):
    """Channels in several blocks, or in a part of one; taps from where they are and packed."""
    available_on(LIBRARY, device)
    image, weight, bias = (random(*s, device=device) for s in ((2, 12, 15, 9), (12, 1, 9, 4), (12,)))
    call = prepare("conv2d", layout(image), weight, bias, padding=(4, 2), groups=12)
    call.result.fill_(torch.nan)
    config = config_of({"RUN": run, "BLOCK": block, "BLOCK_K": block_k, "TURNS": turns} | packed, num_warps=2, num_stages=1)
    for launch in DESIGN.launches(call.problem, config, *call.parts[0]):
        launch.run()
    verdict = numerics.judge(call.problem, call.result, image, weight, bias, padding=(4, 2), groups=12)
    assert verdict.ok, verdict


def test_any_width_is_taken_and_columns_that_are_unrolled():
    image, options = (1, 4, 90, 90), {"padding": (0, 45)}
    assert DESIGN.refuses(problem(image, (1, 89), **options), H200) is None
    assert DESIGN.refuses(problem(image, (DEPTHWISE_ROWS, 3), **options), H200) is None
    assert "columns" in DESIGN.refuses(problem(image, (DEPTHWISE_ROWS + 1, 3), **options), H200)
    assert DESIGN.refuses(problem(image, (14, 3), dilation=(3, 1), **options), H200) is None
    assert "columns" in DESIGN.refuses(problem(image, (15, 3), dilation=(3, 1), **options), H200)
    asked = problem((1, 4, DEPTHWISE_ROWS, 8), (DEPTHWISE_ROWS - 7, 1))  # of 8 rows of results
    assert max(config.kwargs["RUN"] for config in DESIGN.configs(asked, H200)) == 8


@pytest.mark.parametrize("taps", FILTERS)
@pytest.mark.parametrize("layout", (nchw, channels_last))
def test_configs_are_whole_warps_and_unique(layout, taps):
    """A lane has one channel in NCHW, else four; taps are packed where they do not stay in registers."""
    for height in (1, 7, 56):
        asked = problem((1, 40, height, 56), taps, layout, padding=(taps[0] // 2, taps[1] // 2))
        found = list(DESIGN.configs(asked, H200))
        assert found and len(set(map(str, found))) == len(found)
        for config in found:
            tile = config.kwargs
            assert tile["BLOCK"] * tile["BLOCK_K"] == 32 * config.num_warps * (4 if layout is channels_last else 1)
            assert tile["RUN"] == 1 or extent(tile["RUN"], asked) <= DEPTHWISE_ROWS
        packs = any("PACKED" in config.kwargs for config in found)
        assert packs == (layout is channels_last and taps[0] * taps[1] > MOST_KEPT)


def test_work_counts_rows_of_runs_and_packed_taps():
    """8 + 12 rows of inputs for a run of 8 outputs and a column of 13 taps; a lane's channels make no more trips than one."""
    tile = {"RUN": 8, "BLOCK": 16, "BLOCK_K": 32, "TURNS": 1}
    asked, taps = problem((1, 32, 64, 16), (13, 13), padding=6), 169 * 32 * 4
    (gathered,) = DESIGN.work(asked, config_of(tile, 4, 1), H200)
    packing, packed = DESIGN.work(asked, config_of(tile | {"PACKED": True}, 4, 1), H200)
    assert packed.fetched == (20 + 8) * 16 * 32 * 4 + taps and packed.steps == 13 + 2
    assert packed.blocks == 8 and packing.dram == 2 * taps
    assert gathered.fetched == packed.fetched + 32 * (176 - 169) * 4, "whole sectors of each channel's filter"
    tile = {"RUN": 8, "BLOCK": 16, "BLOCK_K": 1, "TURNS": 1}
    (plane,) = DESIGN.work(problem((1, 32, 64, 16), (13, 13), nchw, padding=6), config_of(tile, 4, 1), H200)
    assert plane.blocks == 8 * 32 and plane.fetched == (20 + 8) * 16 * 4 + 176 * 4


COMPILE = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.conv2d import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

(design,) = (d for d in LIBRARY.designs("conv2d") if d.name == "depthwise_channels")
layout, dtype, channels, taps = getattr(torch, sys.argv[1]), getattr(torch, sys.argv[2]), *map(int, sys.argv[3:])
image = torch.empty(16, channels, 58, 58, device="meta", dtype=dtype).to(memory_format=layout)
weight = torch.empty(channels, 1, taps, taps, device="meta", dtype=dtype)
call, target = prepare(image, weight, padding=taps // 2, groups=channels), Target.named("h200")
found = list(design.configs(call.problem, target))
config = next((config for config in found if "PACKED" in config.kwargs), found[0])
*_, launch = design.launches(call.problem, config, *call.parts[0])
kernel = compile_launch(launch, target)
(code,) = sass.read(kernel.asm["cubin"]).values()
print(json.dumps([code.hot_loop(), kernel.metadata.shared, code.stack_bytes, config.kwargs["RUN"]]))
"""


@short(lambda layout, dtype: (layout, dtype) == ("channels_last", "float32"))
@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("layout, share", [("channels_last", 0.5), ("contiguous_format", 0.3)])
def test_a_column_is_loaded_once_in_vectors(layout, share, dtype):
    """With 328 channels, a number that 16 does not divide: run + 12 loads of inputs, and 13 of taps."""
    loop, shared_bytes, stack_bytes, run = json.loads(printed(COMPILE, layout, dtype, "328", "13"))
    a_lane = 4 if layout == "channels_last" else 1
    loads = {opcode: n for opcode, n in loop.items() if opcode.startswith(("LDG", "LDS", "LDL"))}
    assert sum(n for opcode, n in loop.items() if opcode.startswith("FFMA")) == 13 * run * a_lane
    assert sum(loads.values()) == run + 12 + 13 and shared_bytes == stack_bytes == 0, loads
    assert a_lane == 1 or all(".128" in opcode or ".64" in opcode for opcode in loads), loads
    assert loop["FFMA"] >= share * sum(loop.values()), loop
