"""conv2d's precision, and what implicit_gemm promises beyond the tests of every design."""

import json

import pytest
import torch
import triton

from perf.offline import representative_calls
from tests.compiler import printed
from tests.harness import (
    DEVICES,
    available_on,
    bits,
    channels_last,
    cropped,
    prepare,
    random,
    rounded_to_tf32,
    run_checked,
    short,
    without_ties,
)
from tritonkernels import numerics
from tritonkernels.conv2d.parts.slices import configs as of_dot
from tritonkernels.conv2d.parts.slices import count_slices, fits, is_flat
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

on_devices = pytest.mark.parametrize("device", DEVICES)
IMPLICIT = {d.name: d for d in LIBRARY.designs("conv2d")}["implicit_gemm"]
GPUS = [Target.named(name) for name in ("sm_80", "sm_90", "sm_100", "sm_120")]


def nchw(t):
    return t


# A sum of 3 x 2 x 21 products in slices of 16: of one tap, the last of 5 channels; and of several taps.
GEOMETRY = {"padding": (1, 2), "stride": (2, 1), "dilation": (1, 2), "groups": 2}


def computed(call, config):
    """(result, launches) of a call by a config, which need not be the one that would be chosen."""
    call.result.fill_(torch.nan)
    launches = list(IMPLICIT.launches(call.problem, config, *call.parts[0]))
    for launch in launches:
        launch.run()
    return launches


def small(split_k=1, flat=False, pack=False):
    tile = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP_M": 2}
    return triton.Config(tile | {"SPLIT_K": split_k, "FLAT": flat, "PACK": pack}, num_warps=4, num_stages=2)


GROUPS = {
    "channels that are no chunks": ((2, 27, 6, 7), (66, 9, 3, 3), {"groups": 3, "padding": 1}),
    "channels that are chunks together": ((1, 8, 6, 7), (6, 4, 3, 3), {"groups": 2, "padding": 1}),
    "whole chunks": ((1, 32, 5, 6), (6, 16, 2, 2), {"groups": 2, "stride": 2}),
    "filters that are planes": ((1, 10, 9, 8), (6, 5, 7, 5), {"groups": 2, "padding": (3, 2)}),
}


@pytest.mark.parametrize("layout", (nchw, channels_last, cropped))
@pytest.mark.parametrize("name", GROUPS)
def test_groups_copied_in_chunks(name, layout):
    """Where a group's channels do not lie so; an infinity of one group reaches no other."""
    image, filters, options = GROUPS[name]
    for dtype, precision in ((torch.float16, None), (torch.float32, "tf32")):
        operands = layout(random(*image, dtype=dtype)), layout(random(*filters, dtype=dtype)), random(filters[0], dtype=dtype)
        operands[0][0, filters[1], 2, 3] = torch.inf  # the second group's first channel
        call = prepare("conv2d", *operands, **options, precision=precision)
        found = [config for config in IMPLICIT.configs(call.problem, GPUS[1]) if "COPIED" in config.kwargs]
        assert bool(found) == (not call.problem.channels_last or filters[1] % (16 // operands[0].itemsize) > 0)
        for split_k, flat in ((1, True), (3, False)) if found else ():
            config = small(split_k, flat)
            config.kwargs["COPIED"] = True
            launches = computed(call, config)
            assert launches[0].name == "channels_last"
            verdict = numerics.judge(call.problem, call.result, *operands, **options, precision=call.problem.precision)
            assert verdict.ok, (verdict.error, verdict.bound)


@short(lambda layout, split_k: layout is nchw or split_k == 3)
@pytest.mark.parametrize("layout", (nchw, channels_last, cropped))
@pytest.mark.parametrize("flat", (False, True))
@pytest.mark.parametrize("split_k, dtype", [(1, torch.bfloat16), (3, torch.float32), (8, torch.float64)], ids=str)
@on_devices
def test_tails_of_tiles_slices_and_splits(device, layout, flat, split_k, dtype):
    """42 pixels and 33 output channels per group in tiles of 32 x 32; the last of 8 splits have few terms or none."""
    available_on(LIBRARY, device)
    image, weight, bias = (random(*s, dtype=dtype, device=device) for s in ((1, 42, 11, 5), (66, 21, 3, 2), (66,)))
    call = prepare("conv2d", layout(image), layout(weight), bias, **GEOMETRY)
    computed(call, small(split_k, flat))
    verdict = numerics.judge(call.problem, call.result, image, weight, bias, **GEOMETRY)
    assert verdict.ok, verdict


@short(lambda channels: channels in (3, 8, 20))
def apart(t):
    """channels_last, with something between the pixels."""
    pixels = t.permute(0, 2, 3, 1)
    return torch.nn.functional.pad(pixels, (0, 1), value=torch.nan)[..., :-1].permute(0, 3, 1, 2)


@pytest.mark.parametrize("channels", (1, 3, 8, 16, 20))
@pytest.mark.parametrize("layout", (nchw, channels_last, apart))
@on_devices
def test_few_channels(device, channels, layout):
    """Flat slices of single elements and of vectors of 8 and 16 bytes, aligned and not."""
    available_on(LIBRARY, device)
    for dtype, start in ((torch.float16, 0), (torch.float16, 1), (torch.float32, 0)):
        image = layout(random(2, channels, 7, 7, dtype=dtype, device=device))
        room = random(2 * (channels + 1) * 49 + 1, dtype=dtype, device=device)
        image = room.as_strided(image.shape, image.stride(), start)
        assert (image.data_ptr() % 16 == 0) == (start == 0)
        weight = random(5, channels, 3, 3, dtype=dtype, device=device)
        call = prepare("conv2d", image, layout(weight), padding=1)
        computed(call, small(flat=True))
        verdict = numerics.judge(call.problem, call.result, image, weight, padding=1)
        assert verdict.ok, (dtype, start, verdict)


@pytest.mark.parametrize("layout, copies", [(nchw, 2), (channels_last, 2), (cropped, 0)])
@on_devices
def test_copies_of_tf32_operands(device, layout, copies):
    """Cropped planes are not copied. Either way the result is as exact as a product of rounded operands."""
    available_on(LIBRARY, device)
    image, weight = (without_ties(random(*shape, device=device)) for shape in ((2, 10, 7, 9), (6, 5, 3, 3)))
    image = layout(image)
    call = prepare("conv2d", image, weight, padding=1, groups=2, precision="tf32")
    assert len(computed(call, small(pack=True))) == 1 + copies
    bound = numerics.gamma(call.problem.terms + 4, 2.0**-23) * numerics.magnitude("conv2d", image, weight, padding=1, groups=2)
    exact = numerics.reference("conv2d", rounded_to_tf32(image), rounded_to_tf32(weight), padding=1, groups=2)
    assert ((call.result.double() - exact).abs() <= bound).all()


@on_devices
def test_weights_are_copied_where_many_pixels_read_them(device):
    available_on(LIBRARY, device)
    image, weight = random(1, 5, 35, 33, device=device), random(3, 5, 2, 2, device=device)
    for filters, copies in ((weight, 1), (channels_last(weight), 0)):
        call = prepare("conv2d", image, filters)
        assert len(computed(call, small())) == 1 + copies
        assert numerics.judge(call.problem, call.result, image, weight).ok


@on_devices
def test_splits_give_the_same_bits_every_time(device):
    """Their counters are zero again at the end, or the second call would be wrong."""
    available_on(LIBRARY, device)
    image, weight = random(1, 70, 7, 7, device=device), random(40, 70, 3, 3, device=device)
    call = prepare("conv2d", image, weight, padding=1)
    computed(call, small(split_k=4))
    first = call.result.clone()
    computed(call, small(split_k=4))
    assert torch.equal(bits(first), bits(call.result)) and torch.isfinite(first).all()


# The configs.
@pytest.mark.gpu
@short(lambda layout, channels, dtype: (layout is nchw) == (channels == 34) or dtype == torch.float16)
@pytest.mark.parametrize("dtype", (torch.float16, torch.float32, torch.float64), ids=str)
@pytest.mark.parametrize("layout", (nchw, channels_last))
@pytest.mark.parametrize("channels", (34, 16))
def test_every_config_of_tensor_cores(channels, layout, dtype):
    """The compiler's layouts of a tile depend on all of these: Triton 3.9 made wrong ones of split tiles of 16 bits in NCHW."""
    available_on(LIBRARY, "cuda")
    image, weight, bias = (
        random(*shape, dtype=dtype, device="cuda") for shape in ((2, channels, 5, 7), (70, channels, 2, 3), (70,))
    )
    args, options = (layout(image), weight, bias), {"padding": (1, 2)}
    options |= {"precision": "tf32"} if dtype == torch.float32 else {}
    for config in IMPLICIT.configs(prepare("conv2d", *args, **options).problem, LIBRARY.target(image.device)):
        run_checked(LIBRARY, "conv2d", "implicit_gemm", *args, config=config, **options)


def problem(image, weight, dtype=torch.float16, **options):
    image, weight = (torch.empty(shape, dtype=dtype, device="meta") for shape in (image, weight))
    return prepare("conv2d", channels_last(image), channels_last(weight), **options).problem


STEM = problem((32, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3)
DEEP = problem((1, 512, 7, 7), (512, 512, 3, 3), padding=1)


def test_a_small_reduction_is_not_padded_tap_by_tap():
    assert is_flat(STEM, 64) and count_slices(STEM, {"BLOCK_K": 64, "FLAT": True}) == 3
    assert count_slices(STEM, {"BLOCK_K": 64, "FLAT": False}) == 49
    assert not is_flat(DEEP, 64)


def test_few_tiles_may_be_split_and_many_may_not():
    def splits(asked, target):
        return {config.kwargs["SPLIT_K"] for config in IMPLICIT.configs(asked, target)}

    for target in GPUS:
        assert {1, 8, 16} <= splits(DEEP, target)
        for asked in (STEM, problem((32, 256, 56, 56), (256, 256, 3, 3), padding=1)):
            assert splits(asked, target) == {1}


def test_tf32_may_be_packed_on_hopper():
    image, weight = (8, 64, 28, 28), (64, 64, 3, 3)
    for target in GPUS:
        for precision in ("ieee", "tf32"):
            asked = problem(image, weight, dtype=torch.float32, padding=1, precision=precision)
            packs = {config.kwargs["PACK"] for config in of_dot(asked, target)}
            assert packs == ({True, False} if precision == "tf32" and target.arch == 90 else {False})


@pytest.mark.parametrize("target", GPUS, ids=lambda target: target.name)
def test_every_config_fits(target):
    for call in representative_calls("conv2d"):
        found = list(of_dot(call.problem, target))
        assert 1 <= len(found) <= 50 and len({str(config) for config in found}) == len(found)
        for config in found:
            how = {"num_warps": config.num_warps, "num_stages": config.num_stages}
            assert fits(config.kwargs, how, call.problem, target)
            assert config.kwargs["SPLIT_K"] in (1, 2, 4, 8, 16)


# Machine code.
COMPILE = """
import json, re, sys, torch
from perf.offline import sass
from perf.offline import compile_launch
from tritonkernels.conv2d import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

(design,) = (d for d in LIBRARY.designs("conv2d") if d.name == "implicit_gemm")
kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "fp64": torch.float64, "ieee": torch.float32}
target, (image, weight, kind, layout) = Target.named(sys.argv[1]), json.loads(sys.argv[2])
layout = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}[layout]
x, w = (torch.empty(s, dtype=kinds[kind], device="meta").to(memory_format=layout) for s in (image, weight))
call = prepare(x, w, padding=1, precision=kind)
config = next(iter(design.configs(call.problem, target)))
*_, launch = design.launches(call.problem, config, *call.parts[0])
kernel = compile_launch(launch, target)
(code,) = sass.read(kernel.asm["cubin"]).values()
tile = config.kwargs
by_element = r"^(#blocked\\d*) = .*sizePerThread = \\[1, 1\\].*order = \\[(\\d), \\d\\]"
axes = {layout: int(axis) for layout, axis in re.findall(by_element, kernel.asm["ttgir"], re.M)}
tiles = {f'{tile["BLOCK_K"]}x{tile["BLOCK_M"]}': 1, f'{tile["BLOCK_M"]}x{tile["BLOCK_K"]}': 0}  # where the pixels are
pointers = r"(?:copy_global_to_local|tt.load) .* tensor<(\\d+x\\d+)x!tt.ptr<\\w+>, (#blocked\\d*)>"
loads = re.findall(pointers, kernel.asm["ttgir"])
along_pixels = [axes[layout] == tiles[shape] for shape, layout in loads if layout in axes]
print(json.dumps([code.stack_bytes, code.hot_loop(), along_pixels]))
"""
PRODUCTS = {
    "sm_80": {"fp16": "HMMA.16816", "bf16": "HMMA.16816.F32.BF16", "tf32": "HMMA.1688.F32", "fp64": "DMMA", "ieee": "FFMA"},
    "sm_90": {"fp16": "HGMMA", "bf16": "HGMMA", "tf32": "HGMMA", "fp64": "DMMA", "ieee": "FFMA"},
}  # fmt: skip
COMPILED = {  # name: (image, filter, precision, layout)
    **{f"{kind} nhwc": ((32, 128, 28, 28), (128, 128, 3, 3), kind, "nhwc") for kind in PRODUCTS["sm_90"]},
    "few pixels": ((1, 512, 7, 7), (512, 512, 3, 3), "fp16", "nhwc"),
    "few channels": ((32, 24, 28, 28), (64, 24, 3, 3), "fp16", "nhwc"),
    **{f"{kind} nchw": ((32, 128, 28, 28), (128, 128, 3, 3), kind, "nchw") for kind in ("fp16", "ieee")},
}
DIVISION = ("I2F", "F2I", "MUFU", "IMAD.HI", "IDIV")  # the instructions of an integer division


@short(lambda architecture, call: architecture == "sm_90" and call in ("fp16 nhwc", "fp16 nchw"))
@pytest.mark.parametrize("architecture", PRODUCTS)
@pytest.mark.parametrize("call", COMPILED)
def test_the_hot_loop_copies_vectors_without_divisions(call, architecture):
    """The tensor-core instruction of the type, on Hopper without waits between products; 16 bytes per copy in channels_last.

    In NCHW lanes go along the pixels.
    """
    *_, kind, layout = COMPILED[call]
    stack_bytes, loop, along_pixels = json.loads(printed(COMPILE, architecture, json.dumps(COMPILED[call])))
    products = sum(n for opcode, n in loop.items() if opcode.startswith(PRODUCTS[architecture][kind]))
    assert products and stack_bytes <= 8, loop
    assert not [opcode for opcode in loop if opcode.startswith(DIVISION)], loop
    copies = {opcode for opcode in loop if opcode.startswith("LDG") and opcode != "LDGDEPBAR"}
    assert copies == {"LDGSTS.E.BYPASS.128"} if layout == "nhwc" else {*along_pixels} == {True}, (loop, along_pixels)
    if architecture == "sm_90" and kind in ("fp16", "bf16", "tf32"):
        assert loop["WARPGROUP.ARRIVE"] <= products / 2, loop


COMPILE_FLAT = """
import torch
from perf.offline import compile_launch
from tritonkernels.conv2d import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

(design,) = (d for d in LIBRARY.designs("conv2d") if d.name == "implicit_gemm")
image, weight = (torch.empty(shape, device="meta") for shape in ((1, 1, 1264, 304), (16, 1, 9, 9)))
call, target = prepare(image, weight, padding=4, precision="tf32"), Target.named("sm_90")
tiles = {config.kwargs["BLOCK_K"]: config for config in design.configs(call.problem, target)}
config = tiles[min(tiles)]
*_, launch = design.launches(call.problem, config, *call.parts[0])
compile_launch(launch, target)
print(config.kwargs["FLAT"])
"""


def test_the_shortest_slices_compile():
    """tl.dot takes 16 products at least: slices of 32 bytes of fp32 are too short."""
    assert printed(COMPILE_FLAT) == "True\n"


# The precision.
@pytest.mark.parametrize("switch", ("ieee", "tf32"))
def test_the_precision_of_torch_is_that_of_its_convolutions(switch):
    convolution = torch.backends.cudnn.conv
    image, weight = torch.empty(1, 2, 5, 5), torch.empty(3, 2, 3, 3)
    before, convolution.fp32_precision = convolution.fp32_precision, switch
    try:
        assert prepare("conv2d", image, weight, precision="torch").problem.precision == switch
        assert prepare("conv2d", image, weight).problem.precision == "ieee"
    finally:
        convolution.fp32_precision = before


def test_the_bound_of_tf32_holds_for_inputs_below_its_spacing():
    """The error is at most half of numerics' input_spacing per tiny input, times the other operand, over the taps inside."""
    image, weight = random(2, 4, 6, 7) * 1e-40, random(6, 2, 3, 2) * 1e4
    options = {"padding": (1, 2), "stride": (2, 1), "groups": 2, "precision": "tf32"}
    problem = prepare("conv2d", image, weight, **options).problem
    options.pop("precision")
    flushed = torch.zeros_like(image)
    exact = torch.nn.functional.conv2d(image, weight, **options)
    assert numerics.judge(problem, exact, image, weight, **options).ok
    spacing = numerics.MODES["tf32"].input_spacing
    off = torch.nn.functional.conv2d(image.double() + 0.49 * spacing, weight.double(), **options).float()
    assert numerics.judge(problem, off, image, weight, **options).ok
    assert not numerics.judge(problem, torch.nn.functional.conv2d(flushed, weight, **options), image, weight, **options).ok
