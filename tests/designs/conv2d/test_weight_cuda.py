"""The CUDA design conv2d_weight.implicit_gemm on tensor cores: edges of tiles, chunks and splits, layouts, accesses, code."""

import math

import pytest
import torch

from cuda_reference.conv2d_weight.implicit_gemm import DESIGN
from cuda_reference.conv2d_weight.parts.tensor_cores import PLACES, shared_bytes, tiles
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
    short,
    step_two,
    thorough,
)
from tritonkernels.operations.conv2d_weight.space import MOST_SPLITS, in_waves
from tritonkernels.target import Target

from .weight_gradients import operands

H200, SIMT = Target.named("h200"), Target.named("simt")
every_kind = pytest.mark.parametrize("kind", ("fp16", "bf16", "tf32"))
one_kind = short(lambda kind: kind == "fp16")
on_devices = pytest.mark.parametrize("device", DEVICES)


def on_tensor_cores(args, options, everything):
    """The configs of a call; in the emulation, where each tile takes g++ seconds, the smallest of each kind and, of wgmma, one
    of two warpgroups and two panels of columns."""
    call = prepare("conv2d_weight", *args, **options)
    target = LIBRARY.target(call.result.device)
    found = [config for config in DESIGN.configs(call.problem, target) if "MATH" in config]
    assert {config["MATH"] for config in found} >= {"MMA"}
    if target.is_gpu or everything:
        return found
    return [c for c in found if (c["BM"], c["BN"]) == (64, 64) or (c["MATH"], c["BN"], c["STAGES"]) == ("WGMMA", 128, 3)]


def check(args, options, everything=False, others=()):
    for config in (*others, *on_tensor_cores(args, options, everything)):
        run_checked(LIBRARY, "conv2d_weight", "implicit_gemm", *args, config=config, **options)


# Sizes around tiles of 64 and 128 rows and columns, slices of 32 and 64 positions, chunks of 4 and 8 channels.
CASES = {
    "one of everything": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "a chunk": ((1, 8, 9, 10), (8, 8, 3, 3), {"padding": 1}),
    "63 positions, a row less than a tile": ((1, 8, 9, 7), (56, 8, 3, 1), {"padding": (1, 0)}),
    "64 positions, a tile": ((1, 64, 8, 8), (64, 64, 1, 1), {}),
    "65 positions, a chunk more than a tile": ((1, 72, 5, 13), (72, 72, 1, 1), {}),
    "rows and columns of two large tiles": ((1, 24, 5, 6), (136, 24, 2, 3), {"padding": (0, 1), "stride": (1, 2)}),
    "more slices than stages": ((2, 8, 19, 17), (16, 8, 2, 2), {}),
    "dilated": ((1, 16, 13, 12), (8, 16, 3, 2), {"dilation": (2, 5), "padding": (3, 1)}),
    "groups": ((2, 32, 6, 5), (48, 16, 2, 2), {"groups": 2}),
    "channels that are no chunks, groups": ((2, 22, 6, 7), (10, 11, 2, 3), {"groups": 2, "dilation": 2, "padding": (2, 1)}),
    "first layer": ((2, 3, 17, 18), (12, 3, 7, 7), {"stride": 2, "padding": 3}),
    "one output channel": ((2, 16, 7, 9), (1, 16, 3, 3), {"stride": 2}),
    "depthwise": ((2, 6, 8, 7), (12, 1, 3, 3), {"groups": 6, "padding": 1}),
    "filter larger than the image": ((1, 8, 2, 2), (8, 8, 5, 4), {"padding": 3}),
    "no positions": ((0, 8, 5, 5), (8, 8, 3, 3), {}),
}


@short(lambda kind, name: kind != "bf16" or name in ("a chunk", "groups"))
@every_kind
@pytest.mark.parametrize("name", CASES)
@on_devices
def test_sizes(kind, name, device, everything):
    available_on(LIBRARY, device)
    check(*operands(kind, CASES[name], device=device), everything)


@short(lambda kind, layout, name: kind == "fp16" and (layout is torch.clone or "groups" in name))
@every_kind
@pytest.mark.parametrize("layout", (torch.clone, first_dim_inside, offset_by_one, padded, step_two, cropped))
@pytest.mark.parametrize("name", ("rows and columns of two large tiles", "channels that are no chunks, groups", "first layer"))
@on_devices
def test_layouts(kind, layout, name, device):
    """Operands that are copied into channels_last first."""
    available_on(LIBRARY, device)
    args, options = operands(kind, CASES[name], layout, device)
    check(args, options)
    check((channels_last(args[0]), *args[1:]), options)


@one_kind
@every_kind
@on_devices
def test_expanded_gradients(kind, device):
    """Gradients of .sum() and .mean((2, 3)), and one that is the same for all channels and positions but not for images."""
    available_on(LIBRARY, device)
    (x, weight, grad), options = operands(kind, CASES["groups"], device=device)
    for shape in ((1, 1, 1, 1), (*grad.shape[:2], 1, 1), (grad.shape[0], 1, 1, 1)):
        check((x, weight, random(*shape, dtype=x.dtype, device=device).expand(grad.shape)), options)


@one_kind
@every_kind
def test_layouts_of_the_result(kind):
    args, options = operands(kind, CASES["rows and columns of two large tiles"])
    for config in on_tensor_cores(args, options, False):
        results = []
        for layout in (torch.clone, channels_last, first_dim_inside, step_two):
            out = layout(torch.full(args[1], math.nan, dtype=args[0].dtype))
            results.append(LIBRARY.run(prepare("conv2d_weight", *args, out=out, **options), "implicit_gemm", config))
        assert all(torch.equal(result, results[0]) for result in results)


@one_kind
@every_kind
@on_devices
def test_what_is_not_there_is_no_factor(kind, device):
    """An infinity of the first position, whose place those past the end of a split have: times 0 it would be NaN."""
    available_on(LIBRARY, device)
    for name in ("65 positions, a chunk more than a tile", "a chunk"):
        for which in (0, 2):
            args, options = operands(kind, CASES[name], device=device)
            args[which][0, 3, 0, 0] = math.inf
            check(args, options, others=({"TM": 8}, {"BM": 4}))


@one_kind
@every_kind
@on_devices
def test_every_call_gives_the_same_bits(kind, device, monkeypatch):
    """In any order of the emulation's threads."""
    available_on(LIBRARY, device)
    args, options = operands(kind, CASES["more slices than stages"], device=device)
    for config in on_tensor_cores(args, options, False):
        results = []
        for order in ("", "1", "2"):
            monkeypatch.setenv("SIMT_ORDER", order)
            results.append(LIBRARY.run(prepare("conv2d_weight", *args, **options), "implicit_gemm", config))
        assert all(torch.equal(result, results[0]) for result in results[1:])


def test_which_operands_are_copied():
    def kernels(x, grad, weight, **options):
        call = prepare("conv2d_weight", x, weight, grad, **options)
        config = next(c for c in DESIGN.configs(call.problem, SIMT) if "MATH" in c)
        return [launch.name for launch in DESIGN.launches(call.problem, config | {"SPLITS": 2}, *call.parts[0])]

    x, grad = (channels_last(torch.empty(2, c, 6, 6, dtype=torch.float16)) for c in (16, 24))
    rest = ["tensor_cores", "add_splits"]
    assert kernels(x, grad, (24, 16, 1, 1)) == rest
    assert kernels(x.contiguous(), grad, (24, 16, 1, 1)) == ["channels_last", *rest]
    assert kernels(x.contiguous(), grad.contiguous(), (24, 16, 1, 1)) == ["channels_last", *rest], "both in one launch"
    assert kernels(x, grad, (24, 8, 1, 1), groups=2) == ["channels_last", *rest], "12 output channels of a group"
    assert kernels(x[:, :3], grad, (24, 3, 1, 1)) == ["channels_last", *rest]


def test_tiles_of_each_gpu():
    def found(target, dtype, **options):
        x, grad = (channels_last(torch.empty(2, 64, 56, 56, dtype=dtype, device="meta")) for _ in range(2))
        problem = prepare("conv2d_weight", x, (64, 64, 1, 1), grad, **options).problem
        return {(tile["MATH"], tile["BM"], tile["BN"]) for tile in tiles(problem, Target.named(target))}

    assert ("WGMMA", 128, 256) in found("h200", torch.float16) and ("MMA", 64, 64) in found("h200", torch.bfloat16)
    assert {math for math, *_ in found("h200", torch.float32, precision="tf32")} == {"MMA"}
    assert {math for name in ("sm_80", "sm_120") for math, *_ in found(name, torch.float16)} == {"MMA"}
    assert found("sm_75", torch.float16) == found("h200", torch.float32) == found("h200", torch.float64) == set()
    args, options = operands("fp16", CASES["a chunk"])
    for name in ("sm_86", "sm_89", "sm_120"):
        target = Target.named(name)
        fitting = tiles(prepare("conv2d_weight", *args, **options).problem, target)
        assert fitting and all(shared_bytes(tile) + PLACES <= target.shared_per_block for tile in fitting)


def test_splits_are_whole_waves():
    image = torch.empty(1, 3, 1080, 1920, device="meta")
    problem = prepare("conv2d_weight", image, (3, 3, 3, 3), image, padding=1).problem
    assert list(in_waves(problem, H200, 9, 64)) == [14, 29, 58]
    assert list(in_waves(problem, H200, 200, 64)) == [1, 2]
    assert list(in_waves(problem, H200, 1, 2**18)) == [1]
    assert max(in_waves(problem, H200, 1, 64)) == 4 * H200.sms <= MOST_SPLITS
    assert list(in_waves(problem, H200, 0, 64)) != []


# Accesses and machine code.
@one_kind
@pytest.mark.parametrize("kind", ("fp16", "tf32"))
def test_accesses(kind):
    """Copies and stores use the fewest possible sectors; slices have no bank conflicts; no races, also of the pairs of columns
    with the first stage, in which the last of five slices is."""
    from cuda_reference.trace import trace

    args, options = operands(kind, ((1, 64, 20, 16), (64, 64, 1, 1), {}))
    call = prepare("conv2d_weight", *args, **options)
    for config in on_tensor_cores(args, options, False)[::2]:
        (traced,) = trace(*DESIGN.launches(call.problem, config | {"SPLITS": 1}, *call.parts[0]))
        assert traced.races == ()
        slices = [
            x for x in traced.accesses if x.space == "shared" and (x.width == 16 or (kind == "tf32" and x.kind == "read"))
        ]
        assert {x.kind for x in slices} == {"read", "write"} or config["MATH"] == "WGMMA"
        assert all(x.units == x.ideal_units for x in slices), [x for x in slices if x.units != x.ideal_units]
        copies = [x for x in traced.accesses if x.array in ("argument 0", "argument 1")]
        assert {x.width for x in copies} == {16} and all(x.units == x.ideal_units for x in copies)
        stores = [x for x in traced.accesses if x.kind == "write" and x.space == "global"]
        assert {x.width for x in stores} == {16 if kind == "fp16" else 8}
        assert all(x.units == x.ideal_units for x in stores)


PRODUCTS = {"fp16": ("HMMA.16816.F32", 0.07), "tf32": ("HMMA.1688.F32.TF32", 0.045)}  # and its share of the loop


@thorough
@nvcc.needed
@pytest.mark.parametrize("architecture, kind", [(90, "fp16"), (90, "tf32"), (80, "fp16"), (80, "tf32")])
def test_machine_code(architecture, kind):
    """For every tile: its instruction, no spills, slices copied by cp.async, one barrier
    per slice."""
    args, options = operands(kind, ((1, 16, 9, 9), (8, 16, 3, 3), {}))
    call = prepare("conv2d_weight", *args, **options)
    kernels = []
    for tile in tiles(call.problem, Target.named(f"sm_{architecture}")):
        *_, launch = DESIGN.launches(call.problem, tile | {"SPLITS": 1}, *call.parts[0])
        kernels.append(launch.expression)
    header = "conv2d_weight/parts/tensor_cores.cuh"
    codes = sass.read(nvcc.compiled(with_its_own(architecture), [header], kernels).cubin).values()
    assert len(codes) == len(kernels) >= 2
    instruction, least = PRODUCTS[kind]
    for code in codes:
        loop = code.hot_loop()
        assert code.stack_bytes == 0, code.name
        if products := sass.count(loop, ("HGMMA",)):
            assert products == 4 and loop["WARPGROUP.ARRIVE"] == 1, f"a product waits for another: {code.name}: {loop}"
        else:
            assert sass.share(loop, (instruction,)) >= least, f"{code.name}: {loop}"
        assert sass.count(loop, ("LDGSTS",)) and sass.count(loop, ("BAR.SYNC",)) == 1, f"{code.name}: {loop}"
