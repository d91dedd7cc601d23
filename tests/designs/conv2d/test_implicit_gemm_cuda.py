"""The CUDA design implicit_gemm: both ways of loading inputs, split reductions, its accesses in the trace, its machine code."""

import pytest
import torch

from cuda_reference.conv2d.implicit_gemm import DESIGN, in_chunks
from cuda_reference.launch import LIBRARY
from cuda_reference.toolchain import with_its_own
from perf.offline import sass
from tests import nvcc
from tests.harness import (
    channels_last,
    first_dim_inside,
    offset_by_one,
    padded,
    prepare,
    random,
    run_checked,
    short,
    step_two,
    thorough,
)
from tritonkernels.target import Target

H200, SIMT = Target.named("h200"), Target.named("simt")
KINDS = {
    "fp16": (torch.float16, {}),
    "bf16": (torch.bfloat16, {}),
    "tf32": (torch.float32, {"precision": "tf32"}),
    "ieee": (torch.float32, {}),
    "fp64": (torch.float64, {}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def of_kind(kind, *shapes, layout=channels_last):
    dtype, options = KINDS[kind]
    return [layout(random(*shape, dtype=dtype)) for shape in shapes], options


def launches(*operands, config=None, target=SIMT, **options):
    call = prepare("conv2d", *operands, **options)
    chosen = next(c for c in DESIGN.configs(call.problem, target) if (config or {}).items() <= c.items())
    return list(DESIGN.launches(call.problem, chosen, *call.parts[0]))


# Channels per group in whole chunks: fewer than a slice, a slice, and more; taps that begin in the middle of a slice.
CHUNKED = {
    "one chunk": ((1, 8, 9, 10), (5, 8, 3, 3), {"padding": 1}),
    "a slice and a half": ((2, 48, 5, 6), (7, 48, 2, 3), {"padding": (0, 1), "stride": (1, 2)}),
    "dilated": ((1, 16, 13, 12), (4, 16, 3, 2), {"dilation": (2, 5), "padding": (3, 1)}),
    "groups": ((2, 32, 6, 5), (6, 16, 2, 2), {"groups": 2}),
    "one by one": ((2, 72, 5, 9), (66, 72, 1, 1), {}),
    "one by one, stride": ((2, 16, 7, 9), (3, 16, 1, 1), {"stride": 2}),
    "pixels of two tiles and two images": ((2, 8, 9, 8), (70, 8, 3, 3), {"padding": 1}),
    "filter larger than the image": ((1, 8, 2, 2), (3, 8, 5, 4), {"padding": 3}),
}


@every_kind
@pytest.mark.parametrize("name", CHUNKED)
def test_channels_by_16_bytes(kind, name):
    image, filters, options = CHUNKED[name]
    (input, weight), precision = of_kind(kind, image, filters)
    assert in_chunks(prepare("conv2d", input, weight, **options).problem, input)
    bias = random(filters[0], dtype=input.dtype)
    for splits in (1, 3):
        run_checked(LIBRARY, "conv2d", "implicit_gemm", input, weight, bias, config={"SPLITS": splits}, **options, **precision)


# Elements one by one: NCHW, a reduction that is no multiple of a chunk, and memory that is not aligned to 16 bytes.
@every_kind
@pytest.mark.parametrize("layout", (torch.clone, channels_last, first_dim_inside, offset_by_one, padded, step_two))
def test_elements_of_any_strides(kind, layout):
    for image, filters, options in (
        ((2, 3, 17, 18), (5, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((1, 22, 6, 7), (10, 11, 2, 3), {"groups": 2, "dilation": 2, "padding": (2, 1)}),
    ):
        operands, precision = of_kind(kind, image, filters, layout=layout)
        assert not in_chunks(prepare("conv2d", *operands, **options).problem, operands[0])
        for splits in (1, 3):
            run_checked(LIBRARY, "conv2d", "implicit_gemm", *operands, config={"SPLITS": splits}, **options, **precision)


COPIED = {name: case for name, case in CHUNKED.items() if "one by one" not in name} | {
    "channels that are no chunks": ((2, 11, 7, 6), (5, 11, 3, 2), {"padding": 1, "stride": 2}),
    "groups of channels that are no chunks": ((2, 27, 6, 7), (66, 9, 3, 3), {"groups": 3, "padding": 1}),
    "filters that are planes": ((1, 10, 9, 8), (6, 5, 7, 5), {"groups": 2, "padding": (3, 2)}),
}


@pytest.mark.parametrize("kind", ("ieee", "fp16", "tf32"))
@pytest.mark.parametrize("layout", (torch.clone, channels_last, padded, step_two))
@pytest.mark.parametrize("name", COPIED)
def test_copied_inputs(name, layout, kind):
    """Launches more, after which cp.async copies 16 bytes: where there are several taps, and no other design copies."""
    image, filters, options = COPIED[name]
    (input, weight), precision = of_kind(kind, image, filters, layout=layout)
    input[0, -1, 1, 1] = torch.inf  # of the last group, which reaches no other
    call = prepare("conv2d", input, weight, **options, **precision)
    offered = any("COPIED" in config for config in DESIGN.configs(call.problem, H200))
    in_chunks = call.problem.channels_last and filters[1] % (16 // input.itemsize) == 0
    assert offered == ((kind == "ieee" or "groups" in options) and not in_chunks)
    if not offered:
        return
    bias = random(filters[0], dtype=input.dtype)
    for splits in (1, 3):
        config = {"SPLITS": splits, "COPIED": True}
        run_checked(LIBRARY, "conv2d", "implicit_gemm", input, weight, bias, config=config, **options, **precision)
    names = [launch.name for launch in launches(input, weight, config={"COPIED": True}, **options, **precision)]
    assert names[0] == "channels_last" and "table_of_taps" not in names


def test_copies_have_no_more_zeros_than_channels():
    def offered(channels, taps=3):
        operands, _ = of_kind("fp16", (2, 4 * channels, 8, 8), (16, channels, taps, taps), layout=torch.clone)
        return any("COPIED" in c for c in DESIGN.configs(prepare("conv2d", *operands, groups=4).problem, H200))

    assert [channels for channels in range(1, 18) if offered(channels)] == [*range(4, 18)]
    assert not offered(16, taps=1)


@pytest.mark.parametrize("layout", (torch.clone, channels_last))
def test_inputs_that_no_output_reads_may_be_anything(layout):
    """Taps that pad the last slice must not be read as inputs: a NaN there, times 0, would be NaN."""
    input, weight = random(1, 8, 7, 4), random(3, 8, 3, 1)  # 24 taps in slices of 16: the padding would read row 3
    input[:, :, 3] = torch.nan
    run_checked(LIBRARY, "conv2d", "implicit_gemm", layout(input), weight, stride=(4, 1))


@short(lambda kind: kind == "fp16")
@pytest.mark.parametrize("name", CHUNKED)
@pytest.mark.parametrize("kind", ("fp16", "bf16"))
def test_by_wgmma(kind, name):
    """The tile for few pixels, with splits, and a larger one, of which each warpgroup has half."""
    image, filters, options = CHUNKED[name]
    for layout in (channels_last, torch.clone) if kind == "fp16" else (channels_last,):
        (input, weight), _ = of_kind(kind, image, filters, layout=layout)
        for config in ({"BM": 64, "SPLITS": 3}, {"BM": 128, "BN": 128, "SPLITS": 1}):
            run_checked(LIBRARY, "conv2d", "implicit_gemm", input, weight, config={"MATH": "WGMMA", **config}, **options)


@pytest.mark.parametrize("kind", ("fp16", "ieee"))
def test_no_channels_give_the_bias(kind):
    (input, weight), precision = of_kind(kind, (1, 0, 4, 5), (3, 0, 2, 2), layout=torch.clone)
    run_checked(LIBRARY, "conv2d", "implicit_gemm", input, weight, random(3, dtype=input.dtype), **precision)


def test_which_inputs_are_copied_by_16_bytes():
    def chunked(input, groups=1):
        weight = torch.empty(2 * groups, input.shape[1] // groups, 1, 1, dtype=input.dtype)
        return in_chunks(prepare("conv2d", input, weight, groups=groups).problem, input)

    half = channels_last(torch.empty(2, 16, 5, 6, dtype=torch.float16))
    assert chunked(half) and chunked(half, groups=2)
    assert not chunked(half, groups=4) and not chunked(half.contiguous())
    assert not chunked(half[:, 1:9]) and chunked(half[:, 8:]) and not chunked(half[:, :12])
    assert chunked(half[:, :, 1:, ::2]) and chunked(channels_last(torch.empty(2, 12, 5, 6)))
    assert not chunked(channels_last(torch.empty(2, 12, 5, 6, dtype=torch.float16))), "pixels are 24 bytes apart"


def test_filters_are_packed_only_from_other_layouts():
    def kernels(input, weight):
        return [launch.name for launch in launches(input, weight)]

    image, filters = random(1, 16, 5, 6, dtype=torch.float16), random(8, 16, 3, 3, dtype=torch.float16)
    assert kernels(channels_last(image), channels_last(filters)) == ["implicit_gemm"]
    assert kernels(channels_last(image), filters) == ["pack_filters", "implicit_gemm"]
    assert kernels(image, filters) == ["table_of_taps", "implicit_gemm"]
    assert kernels(image, channels_last(filters)) == ["pack_filters", "table_of_taps", "implicit_gemm"]
    assert kernels(image[:, :3], filters[:, :3].contiguous()) == ["pack_filters", "table_of_taps", "implicit_gemm"]


def test_more_pixels_than_32_bits_can_count_are_refused():
    def refusal(images):
        operands = (torch.empty(*shape, device="meta") for shape in ((images, 1, 256, 256), (1, 1, 1, 1)))
        return DESIGN.refuses(prepare("conv2d", *operands).problem, H200)

    assert refusal(2**14) is None and "32 bits" in refusal(2**15)


# Accesses and machine code.
@short(lambda kind: kind == "fp16")
@pytest.mark.parametrize("kind", ("fp16", "ieee"))
def test_accesses_of_channels_last(kind):
    """Copies and stores use the fewest possible sectors; fragments have no bank conflicts; no races."""
    from cuda_reference.trace import trace

    (input, weight), precision = of_kind(kind, (1, 64, 8, 16), (64, 64, 3, 3))
    (launch,) = launches(input, weight, padding=1, **precision)
    (traced,) = trace(launch)
    assert traced.races == ()
    shared = [x for x in traced.accesses if x.space == "shared" and x.width == 16]
    assert {x.kind for x in shared} == {"read", "write"} and all(x.units == x.ideal_units for x in shared)
    copies = [x for x in traced.accesses if x.array in ("argument 0", "argument 1")]
    assert {x.width for x in copies} == {16} and all(x.units == x.ideal_units for x in copies)
    if kind == "fp16":
        stores = [x for x in traced.accesses if x.kind == "write" and x.space == "global"]
        assert {x.width for x in stores} == {16} and all(x.units == x.ideal_units for x in stores)


@short(lambda kind: kind == "fp16")
@pytest.mark.parametrize("kind", ("fp16", "ieee"))
def test_accesses_of_nchw(kind):
    """Lanes along W, in rows of whole tiles: loads use the fewest possible sectors; no bank conflicts."""
    from cuda_reference.trace import trace

    (input, weight), precision = of_kind(kind, (1, 16, 8, 64), (64, 16, 1, 1), layout=torch.clone)
    table, launch = launches(input, weight, **precision)
    table.run()
    traced = trace(launch)[0]
    assert traced.races == ()
    loads = [x for x in traced.accesses if x.array == "argument 0"]
    assert loads and all(x.units == x.ideal_units for x in loads)
    shared = [x for x in traced.accesses if x.space == "shared" and x.width == 16]
    assert {x.kind for x in shared} == {"read", "write"} and all(x.units == x.ideal_units for x in shared)


# The instruction of each kind's products, and its share in the hot loop with channels loaded by 16 bytes and one by one.
PRODUCTS = {
    "fp16": ("HMMA.16816.F32", 0.15, 0.05),
    "tf32": ("HMMA.1688.F32.TF32", 0.07, 0.055),  # before Hopper rounding takes four instructions, to keep NaN
    "ieee": ("FFMA", 0.64, 0.6),
    "fp64": ("DFMA", 0.4, 0.4),
}


@thorough
@nvcc.needed
@pytest.mark.parametrize("architecture, kind", [*((90, kind) for kind in PRODUCTS), (80, "fp16"), (80, "ieee")])
def test_machine_code(architecture, kind):
    """For every tile: its instruction, no spills, slices copied by cp.async, one barrier
    per slice."""
    (input, weight), precision = of_kind(kind, (1, 16, 9, 9), (8, 16, 3, 3))
    problem, target = prepare("conv2d", input, weight, **precision).problem, Target.named(f"sm_{architecture}")
    configs = {tuple(config.items())[:-1]: config for config in DESIGN.configs(problem, target)}.values()  # but for splits
    kernels = [
        name
        for config in configs
        for name in launches(input, weight, config=config, target=target, **precision)[-1].source.expressions
    ]
    codes = sass.read(nvcc.compiled(with_its_own(architecture), ["conv2d/implicit_gemm.cuh"], kernels).cubin).values()
    assert len(codes) == len(kernels) >= 2
    instruction, chunked, one_by_one = PRODUCTS[kind]
    for code in codes:
        loop = code.hot_loop()
        assert code.stack_bytes == 0, code.name
        if products := sass.count(loop, ("HGMMA",)):
            assert products == 4 and loop["WARPGROUP.ARRIVE"] == 1, f"a product waits for another: {code.name}: {loop}"
        else:
            least = chunked if "Lb1EEEv" in code.name else one_by_one
            assert sass.share(loop, (instruction,)) >= least, f"{code.name}: {loop}"
        assert sass.count(loop, ("LDGSTS",)) and sass.count(loop, ("BAR.SYNC",)) == 1, f"{code.name}: {loop}"
