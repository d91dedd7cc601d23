"""The Triton design conv2d.implicit_gemm in fp32 by Gluon: on the CPU as threads (gluon_threads), its machine code."""

import itertools
import json

import pytest
import torch

from tests import gluon_threads
from tests.compiler import printed
from tests.harness import a_third, available_on, channels_last, cropped, prepare, random, run_checked, step_two
from tritonkernels.config import config_of
from tritonkernels.conv2d.implicit_gemm import DESIGN
from tritonkernels.conv2d.parts.cuda_cores import TILES
from tritonkernels.launch import LIBRARY
from tritonkernels.numerics import judge
from tritonkernels.target import Target

H200 = Target.named("h200")
CASES = {  # image, weight, options
    "a tile of pixels and of channels": ((1, 8, 10, 10), (64, 8, 3, 3), {}),
    "a pixel and a channel more": ((1, 4, 5, 13), (65, 4, 1, 1), {}),
    "8 taps a slice": ((2, 4, 9, 8), (5, 4, 3, 3), {"padding": 1}),
    "slices that begin within a tap": ((1, 40, 6, 7), (9, 40, 2, 3), {"padding": (1, 0)}),
    "channels that are no chunks": ((2, 7, 9, 9), (3, 7, 5, 1), {"stride": (2, 1)}),
    "strides and dilation": ((1, 36, 17, 19), (10, 36, 3, 2), {"stride": (2, 3), "dilation": (3, 2), "padding": 2}),
    "padding beyond the image": ((2, 8, 3, 4), (6, 8, 2, 2), {"padding": (4, 3), "stride": 2}),
    "one of all": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
}


def operands(case, layout=channels_last, device="cpu"):
    image, weight, options = case
    return (*(layout(random(*of, device=device)) for of in (image, weight)), random(weight[0], device=device)), options


def config(tile=(64, 64, 32), splits=1, warps=2, stages=3):
    numbers = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), tile)) | {"SPLIT_K": splits, "GROUP_M": 8}
    return config_of(numbers, warps, stages, 255)


def check(args, options, config, seed=0, out=None):
    """Runs the launches: the one in Gluon by threads, the others in the interpreter."""
    call = prepare("conv2d", *args, out=out, **options)
    call.result.fill_(float("nan"))
    for launch in DESIGN.launches(call.problem, config, *call.parts[0]):
        if launch.name == "cuda_cores":
            gluon_threads.run(launch, seed)
        else:
            launch.run()
    verdict = judge(call.problem, call.result, *args, **options)
    assert verdict.ok, f"{call.problem}: error {verdict.error:.3g} above the bound {verdict.bound:.3g}"


@pytest.mark.parametrize("splits", (1, 2))
def test_what_follows(splits):
    """Once where programs share a tile."""
    for name, layout in (("slices that begin within a tap", channels_last), ("strides and dilation", torch.clone)):
        args, options = operands(CASES[name], layout)
        residual = random(*prepare("conv2d", *args, **options).result.mT.shape).mT
        check(args, options | {"residual": residual, "activation": "relu"}, config(splits=splits))
        check((*args[:2], None), options | {"activation": "relu"}, config(splits=splits))


@pytest.mark.parametrize("name", CASES)
def test_sizes(name):
    args, options = operands(CASES[name])
    check(args, options, config())
    check((*args[:2], None), options, config((128, 64, 32), warps=4, stages=2))


@pytest.mark.parametrize("splits", (2, 4))
def test_splits(splits):
    """18 slices: a split may have fewer than the others."""
    args, options = operands(((1, 64, 9, 9), (70, 64, 3, 3), {"padding": 1}))
    for seed in range(2):
        check(args, options, config(splits=splits), seed)


@pytest.mark.parametrize("layout", (torch.clone, cropped, step_two))
def test_layouts(layout):
    """Operands that are copied into channels_last first, and results in that layout."""
    args, options = operands(CASES["strides and dilation"], layout)
    shape = prepare("conv2d", *args, **options).result.shape
    check(args, options, config(), out=layout(torch.empty(shape)))
    check(args, options, config(splits=2), out=channels_last(torch.empty(shape)))


def found(dtype=torch.float32, target=H200, groups=1, **options):
    x, weight = (torch.empty(*of, dtype=dtype, device="meta") for of in ((2, 64, 56, 56), (64, 64 // groups, 3, 3)))
    problem = prepare("conv2d", x, weight, groups=groups, **options).problem
    return [config for config in DESIGN.configs(problem, target) if "FLAT" not in config.kwargs]


def test_which_problems_have_these_tiles():
    assert {(c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"], 32, c.num_warps, c.num_stages) for c in found()} == {*TILES}
    assert {c.kwargs["SPLIT_K"] for c in found() if c.kwargs["BLOCK_M"] == c.kwargs["BLOCK_N"] == 128} == {1, 2, 4}
    assert found(target=Target.named("sm_80"))
    assert not found(torch.float16) and not found(torch.float64) and not found(precision="tf32") and not found(groups=2)
    assert not any(found(target=Target.named(name)) for name in ("sm_75", "interpreter", "mi300x"))


def test_offsets_have_32_bits():
    """An operand is read where it is only if its own offsets do; a view of more is copied."""

    def tiles(n, layout=channels_last):
        x, weight = layout(torch.empty(n, 64, 128, 128, device="meta")), torch.empty(64, 64, 3, 3, device="meta")
        call = prepare("conv2d", x, weight)
        chosen = [config for config in DESIGN.configs(call.problem, H200) if "FLAT" not in config.kwargs]
        return chosen and [launch.name for launch in DESIGN.launches(call.problem, chosen[0], *call.parts[0])]

    def far(t):
        return torch.empty_strided(t.shape, (t.stride(0), 1, *(4096 * stride for stride in t.stride()[2:])), device="meta")

    assert tiles(4) == tiles(2047) == tiles(4, lambda t: far(channels_last(t))) == ["channels_last", "cuda_cores"]
    assert not tiles(2048)


@pytest.mark.gpu
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_on_a_gpu(tile, everything):
    available_on(LIBRARY, "cuda")
    every = itertools.product(CASES.values(), (channels_last, torch.clone), (1, 2))
    for case, layout, splits in a_third(every, TILES.index(tile), everything):
        args, options = operands(case, layout, "cuda")
        chosen = config(tile[:3], splits, *tile[3:])
        if chosen in DESIGN.configs(prepare("conv2d", *args, **options).problem, LIBRARY.target(args[0].device)):
            run_checked(LIBRARY, "conv2d", "implicit_gemm", *args, config=chosen, **options)


COMPILED = """
import json, torch
from perf.offline import compile_launch, sass
from tritonkernels.conv2d import prepare
from tritonkernels.conv2d.implicit_gemm import DESIGN
from tritonkernels.target import Target

target = Target.named("h200")
x, weight = (torch.empty(*s, device="meta").to(memory_format=torch.channels_last) for s in ((4, 72, 40, 40), (72, 72, 3, 3)))
call = prepare(x, weight, padding=1)
config = next(c for c in DESIGN.configs(call.problem, target) if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) == (128, 128))
launch = next(l for l in DESIGN.launches(call.problem, config, *call.parts[0]) if l.name == "cuda_cores")
(code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
print(json.dumps([code.stack_bytes, [text.split()[0] for _, text in code.hot_instructions()]]))
"""


def test_the_loop_multiplies():
    """A slice is 32 columns, for each of which a thread's 8 x 8 sums take 4 quads."""
    stack, loop = json.loads(printed(COMPILED))
    assert stack == 0
    assert loop.count("FFMA") == 32 * 64 and loop.count("FFMA") / len(loop) >= 0.88
    assert loop.count("LDS.128") == 32 * 4 and loop.count("LDGSTS.E.BYPASS.128") == 8
