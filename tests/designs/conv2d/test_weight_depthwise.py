"""conv2d_weight.depthwise in both packages: edges of patches, channels and tiles of taps, layouts, what is not there, code."""

import collections
import json
import math

import pytest
import torch

from cuda_reference.conv2d_weight import depthwise as cuda
from cuda_reference.launch import LIBRARY as CUDA
from cuda_reference.toolchain import with_its_own
from perf.offline import sass
from tests import nvcc
from tests.compiler import printed
from tests.harness import (
    DEVICES,
    LIBRARIES,
    available_on,
    channels_last,
    cropped,
    first_dim_inside,
    offset_by_one,
    padded,
    prepare,
    run_checked,
    short,
    step_two,
    thorough,
)
from tritonkernels.conv2d_weight import depthwise as triton
from tritonkernels.conv2d_weight.depthwise import pieces, rows_of_patch
from tritonkernels.launch import LIBRARY
from tritonkernels.operations.conv2d_weight.patches import refuses, tile_of_taps
from tritonkernels.target import Target

from . import weight_gradients

every_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
on_devices = pytest.mark.parametrize("device", DEVICES)


def operands(case, layout=torch.clone, kind="fp32", device="cpu"):
    """((input, weight_size, grad_output), options) of a case (images, channels, size, filters a channel, taps, options)."""
    n, c, size, per_channel, taps, options = case
    convolution = (n, c, *size), (c * per_channel, 1, *taps), {"groups": c} | options
    return weight_gradients.operands(kind, convolution, layout, device)


def configs(library, args, options):
    """One for each kernel."""
    call = prepare("conv2d_weight", *args, **options)
    design = {d.name: d for d in library.designs("conv2d_weight")}["depthwise"]
    found = {}
    for config in design.configs(call.problem, library.target(call.result.device)):
        numbers = dict(config) if library is CUDA else config.kwargs
        found[tuple(value for name, value in numbers.items() if name != "SPLITS")] = config
    return found.values()


def check(library, args, options):
    """The first and the last config: long and short vectors, narrow and wide patches."""
    first, *_, last = configs(library, args, options)
    for config in (first, last):
        run_checked(library, "conv2d_weight", "depthwise", *args, config=config, **options)


# Sizes around patches of 4 and 7 columns and 7 and 8 rows, groups of 32 channels, tiles of up to 7 x 7 taps.
CASES = {
    "a patch": (1, 8, (7, 4), 1, (3, 3), {"padding": 1}),
    "one position more": (2, 5, (8, 5), 1, (3, 3), {"padding": 1}),
    "inside of the image": (1, 8, (9, 10), 1, (3, 3), {}),
    "steps": (2, 4, (15, 16), 1, (3, 5), {"padding": (1, 2), "stride": 2}),
    "a step each way": (1, 4, (12, 16), 1, (2, 3), {"stride": (1, 2)}),
    "a chunk of channels and one more": (1, 33, (5, 6), 1, (1, 2), {"padding": 1}),
    "two filters a channel": (1, 3, (6, 8), 2, (3, 3), {"padding": 1}),
    "several tiles of taps": (1, 2, (9, 12), 1, (8, 9), {"padding": (4, 4)}),
    "filter larger than the image": (1, 4, (2, 4), 1, (5, 7), {"padding": (2, 3)}),
    "no images": (0, 4, (5, 4), 1, (3, 3), {}),
    "patches beyond the plane": (1, 4, (13, 6), 1, (3, 3), {}),
}


@short(lambda library, name, layout: name in tuple(CASES)[:5] or layout is channels_last)
@every_library
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", (torch.clone, channels_last), ids=lambda f: f.__name__)
@on_devices
def test_sizes(library, name, layout, device):
    available_on(library, device)
    check(library, *operands(CASES[name], layout, device=device))


@short(lambda library, layout: layout is offset_by_one or (library is CUDA and layout is step_two))
@every_library
@pytest.mark.parametrize("layout", (first_dim_inside, offset_by_one, padded, step_two, cropped), ids=lambda f: f.__name__)
@on_devices
def test_layouts(library, layout, device):
    """Also of one operand, where the other's rows or channels are whole vectors."""
    available_on(library, device)
    case = CASES["a patch"]
    for around in (torch.clone, channels_last):
        (x, weight, grad), options = operands(case, around, "fp16", device)
        check(library, (layout(x), weight, grad), options)
        check(library, (x, weight, layout(grad)), options)


def test_rows_that_end_within_a_quad():
    """Columns after the last lie in aligned rows."""
    (x, weight, grad), options = operands((1, 4, (9, 10), 1, (3, 3), {}))
    check(LIBRARY, (padded(x), weight, padded(grad)), options)


@every_library
@pytest.mark.parametrize("name", ("a step each way", "one position more", "steps", "patches beyond the plane"))
@on_devices
def test_what_is_not_there_is_no_factor(library, name, device):
    """An infinite input next to positions outside of the plane, whose gradients are no zeros to multiply it with."""
    available_on(library, device)
    for layout in (torch.clone, channels_last):
        (x, weight, grad), options = operands(CASES[name], layout, device=device)
        x[0, :, -1, -1] = math.inf
        check(library, (x, weight, grad), options)


def problem_of(n, c, size, per_channel, taps, options, **other):
    args, options = operands((n, c, size, per_channel, taps, options))
    return prepare("conv2d_weight", *args, **options | other).problem


def test_refusals():
    def why(*case, **options):
        (x, weight, grad), options = operands(case, lambda t: t.to("meta")) if case else (None, None)
        return refuses(prepare("conv2d_weight", x, weight, grad, **options).problem, None)

    assert why(1, 4, (9, 9), 1, (3, 3), {}) is None
    assert "dilation of (1, 2)" in why(1, 4, (9, 9), 1, (3, 3), {"dilation": (1, 2)})
    assert "strides of 1 and 2, not (1, 3)" in why(1, 4, (9, 9), 1, (3, 3), {"stride": (1, 3)})
    x = torch.empty(1, 4, 9, 9)
    assert "not 2" in refuses(prepare("conv2d_weight", x, (4, 2, 3, 3), torch.empty(1, 4, 7, 7), groups=2).problem, None)
    x = torch.empty(1, device="meta").expand(2**11, 1, 2**10, 2**10)
    assert "32 bits" in refuses(prepare("conv2d_weight", x, (1, 1, 1, 1), x).problem, None)


def test_tiles_of_taps_and_rows_of_patches():
    def problem(taps, rows=7):
        return problem_of(1, 1, (rows + taps - 1, 33), 1, (taps, 1), {})

    assert [tile_of_taps(problem(taps))[0] for taps in (1, 7, 8, 13, 15, 31)] == [1, 7, 4, 7, 5, 7]
    assert [rows_of_patch(problem(3, rows)) for rows in (1, 2, 7, 8, 10, 13, 14, 56)] == [1, 2, 7, 8, 5, 7, 7, 8]


def test_patches_are_quads_where_rows_are():
    def across(size, taps, options, layout=torch.clone):
        (x, weight, grad), options = operands((1, 4, size, 1, taps, options), layout, device="meta")
        configs = triton.DESIGN.configs(prepare("conv2d_weight", x, weight, grad, **options).problem, Target.named("h200"))
        return {config.kwargs["ACROSS"] for config in configs}

    same = {"padding": 1}
    assert across((28, 28), (3, 3), same) == {4}
    assert across((28, 28), (3, 3), same, channels_last) == {7, 4}
    assert across((28, 28), (3, 9), {"padding": (1, 4)}) == {7, 4}, "tiles of taps begin anywhere"
    assert across((28, 14), (3, 3), same) == {7, 2}
    assert across((28, 30), (3, 3), {}) == {7, 4}, "rows of 30 inputs"


def test_which_operands_are_read_by_vectors():
    """SHIFT and WIDTH of the kernel."""
    target = Target.named("simt")

    def kernel(layout, case, moved=torch.clone):
        (x, weight, grad), options = operands(case, layout)
        call = prepare("conv2d_weight", moved(x), weight, grad, **options)
        config = next(iter(cuda.DESIGN.configs(call.problem, target)))
        launch, *_ = cuda.DESIGN.launches(call.problem, config, *call.parts[0])
        return launch.expression.rstrip(">").split(", ")[-3:]

    inside = CASES["inside of the image"]
    assert kernel(torch.clone, inside)[-1] == "-1", "10 columns"
    assert kernel(torch.clone, CASES["a patch"]) == ["1", "1", "3"]
    assert kernel(torch.clone, CASES["a patch"], offset_by_one) == ["1", "1", "-1"]
    assert kernel(torch.clone, CASES["several tiles of taps"])[-1] == "-1"
    assert kernel(channels_last, inside) == ["8", "4", "-1"]
    assert kernel(channels_last, inside, offset_by_one) == ["8", "1", "-1"]
    assert kernel(channels_last, CASES["one position more"]) == ["8", "1", "-1"], "5 channels"
    assert kernel(channels_last, CASES["two filters a channel"]) == ["8", "1", "-1"]


def begun_later(t):
    """Aligned rows, but for the address of the first."""
    later = torch.empty(t.numel() + 1, dtype=t.dtype)[1:].view(t.shape)
    return later.copy_(t)


def test_which_operands_tritons_kernel_reads_by_quads():
    """PIECE and FIRST of the kernel: all of a quad is there, or nothing is."""

    def read(case, layout=torch.clone, moved=torch.clone, moved_grad=torch.clone):
        (x, weight, grad), options = operands(case, layout)
        call = prepare("conv2d_weight", moved(x), weight, moved_grad(grad), **options)
        config = next(c for c in triton.DESIGN.configs(call.problem, Target.named("h200")) if c.kwargs["ACROSS"] == 4)
        return pieces(call.problem, config, *call.parts[0][:2])

    patch, one = CASES["a patch"], (1, 0)
    assert read(patch) == (4, 3) and read(CASES["steps"]) == (4, 2)
    assert read(CASES["filter larger than the image"]) == (4, 1)
    assert read(CASES["two filters a channel"]) == (4, 3)
    assert read(patch, moved=padded, moved_grad=padded) == (4, 3), "aligned rows"
    for moved in (offset_by_one, step_two, cropped, begun_later):
        assert read(patch, moved=moved) == read(patch, moved_grad=moved) == one
    assert read((1, 8, (7, 4), 1, (3, 9), {"padding": (1, 4)})) == one
    assert read((1, 8, (9, 10), 1, (3, 3), {}), moved=padded) == one, "10 columns"
    assert read(patch, channels_last) == one


COMPILED = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.conv2d_weight import prepare
from tritonkernels.conv2d_weight.depthwise import DESIGN
from tritonkernels.target import Target

layout, dtype, *numbers = sys.argv[1:]
taps, stride, size, wide = map(int, numbers)
x = torch.empty(8, 32, size, size, device="meta", dtype=getattr(torch, dtype)).to(memory_format=getattr(torch, layout))
grad = torch.empty(8, 32, size // stride, size // stride, device="meta", dtype=x.dtype).to(memory_format=getattr(torch, layout))
call, target = prepare(x, (32, 1, taps, taps), grad, padding=taps // 2, stride=stride, groups=32), Target.named("h200")
config = next(DESIGN.configs(call.problem, target))
launch, *_ = DESIGN.launches(call.problem, config, *call.parts[0])
launch.values["WIDE"] = bool(wide)
(code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
print(json.dumps([code.hot_loop(), code.stack_bytes, code.registers]))
"""


# layout, dtype, taps, stride, size, WIDE: least share of multiply-adds, loads of a patch, most registers of a thread
CODES = {
    ("contiguous_format", "float32", 3, 2, 56, 0): (0.35, {"LDG.E.128": 30}, 128),
    ("contiguous_format", "float32", 7, 1, 56, 0): (0.75, {"LDG.E.128": 50}, 168),
    ("contiguous_format", "float16", 7, 1, 28, 0): (0.7, {"LDG.E.64": 40}, 168),
    ("contiguous_format", "float32", 7, 1, 14, 1): (0.7, {"LDG.E": 200}, 255),
    ("channels_last", "bfloat16", 3, 1, 13, 0): (0.2, {"LDG.E.64": 30}, 255),
    ("channels_last", "float32", 3, 1, 28, 0): (0.6, {"LDG.E.128": 130}, 255),
    ("contiguous_format", "float64", 3, 1, 28, 1): (0.35, {"LDG.E.128": 30}, 168),
}


@short(lambda case: case in (("contiguous_format", "float32", 7, 1, 56, 0), ("channels_last", "float32", 3, 1, 28, 0)))
@pytest.mark.parametrize("case", CODES, ids=lambda case: "-".join(map(str, case)))
def test_machine_code_of_triton(case):
    """Most of the loop is multiply-adds; what a patch loads are vectors; few registers are spilled (none but by Triton 3.9)."""
    least, loads, most = CODES[case]
    loop, stack_bytes, registers = json.loads(printed(COMPILED, *map(str, case)))
    loop = collections.Counter(loop)
    assert sass.share(loop, ("FFMA", "DFMA")) >= least, loop
    assert all(loop.get(opcode, 0) >= count for opcode, count in loads.items()), loop
    assert sass.share(loop, sass.LOCAL) < 0.02 and registers <= most, (loop, stack_bytes, registers)


@thorough
@nvcc.needed
def test_machine_code():
    """Most of the loop is multiply-adds; what a patch loads are vectors; few registers are spilled, outside of its rows."""
    planes, pixels = "5, 5, 1, 1, 4, 1, 1, 2", "3, 3, 1, 1, 4, 8, 4, -1"
    kernels = [f"conv2d_weight::depthwise<float, {numbers}>" for numbers in (planes, pixels)]
    codes = sass.read(nvcc.compiled(with_its_own(90), ["conv2d_weight/depthwise.cuh"], kernels).cubin)
    assert len(codes) == 2
    for code, least in zip(sorted(codes.values(), key=lambda code: "Li3" in code.name), (0.7, 0.5)):
        loop = code.hot_loop()
        assert sass.share(loop, ("FFMA",)) >= least, f"{code.name}: {loop}"
        assert sass.share(loop, sass.LOCAL) < 0.02, f"{code.name}: {loop}"
        assert sass.count(loop, ("LDG.E.128",)) >= 30, f"{code.name}: {loop}"


@every_library
def test_every_call_gives_the_same_bits(library, monkeypatch):
    """In any order of the emulation's threads."""
    args, options = operands(CASES["steps"])
    config, *_ = configs(library, args, options)
    results = []
    for order in ("", "1", "2") if library is CUDA else ("", ""):
        monkeypatch.setenv("SIMT_ORDER", order)
        results.append(library.run(prepare("conv2d_weight", *args, **options), "depthwise", config))
    assert all(torch.equal(result, results[0]) for result in results[1:])
