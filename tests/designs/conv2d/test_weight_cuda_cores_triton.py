"""The Triton design conv2d_weight.implicit_gemm in fp32 by Gluon: on the CPU as threads (gluon_threads), its machine code."""

import functools
import itertools
import json

import pytest
import torch

from tests.compiler import printed
from tests.harness import a_third, available_on, channels_last, cropped, prepare, run_checked, thorough
from tritonkernels.config import config_of
from tritonkernels.conv2d_weight.implicit_gemm import DESIGN
from tritonkernels.conv2d_weight.parts.cuda_cores import TILES, bands_and_cut
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

from .test_weight_cuda_cores import CASES, OWN, SHARED
from .weight_gradients import check_by_threads, operands

SIZES = {name: case for name, case in (CASES | OWN).items() if "groups" not in case[2]}
H200 = Target.named("h200")


def config(programs=5, tile=(64, 64, 32), stages=2):
    return config_of(dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_L"), tile)) | {"PROGRAMS": programs}, 2, stages, 160)


check = functools.partial(check_by_threads, DESIGN, "cuda_cores")


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    args, options = operands("fp32", SIZES[name])
    check(args, options, config())
    check(args, options, config(2, (128, 64, 32), stages=3))


@pytest.mark.parametrize("programs, form", [(2, (2, 1, 0)), (5, (0, 2, 1)), (60, (0, 22, 0))])
def test_pieces(programs, form):
    """Whole tiles; heads and tails; many heads. In two orders of what threads do."""
    args, options = operands("fp32", SHARED)
    _, share = bands_and_cut(prepare("conv2d_weight", *args, **options).problem, config(programs))
    assert (share.whole, share.heads, share.sharers) == form
    for seed in range(2):
        check(args, options, config(programs), seed)


def test_offsets_of_64_bits():
    check(*operands("fp32", CASES["dilated"]), config(), wide=True)


@pytest.mark.parametrize("layout", (torch.clone, cropped))
def test_layouts(layout):
    """Operands that are copied into channels_last first, and results in NCHW."""
    check(*operands("fp32", CASES["first layer"], layout), config())


def test_which_problems_have_these_tiles():
    def found(dtype=torch.float32, target=H200, groups=1, **options):
        x = channels_last(torch.empty(2, 64, 56, 56, dtype=dtype, device="meta"))
        call = prepare("conv2d_weight", x, (64, 64 // groups, 1, 1), x, groups=groups, **options)
        return [config for config in DESIGN.configs(call.problem, target) if "PROGRAMS" in config.kwargs]

    assert len(found()) == len(found(target=Target.named("sm_80"))) == 2 * len(TILES)
    assert {c.kwargs["PROGRAMS"] for c in found() if c.kwargs["BLOCK_M"] == c.kwargs["BLOCK_N"] == 128} == {132, 264}
    assert not found(torch.float16) and not found(torch.float64) and not found(precision="tf32") and not found(groups=2)
    assert not any(found(target=Target.named(name)) for name in ("sm_75", "interpreter", "mi300x"))


@pytest.mark.gpu
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_on_a_gpu(tile, everything):
    available_on(LIBRARY, "cuda")
    every = itertools.product((*SIZES.values(), SHARED), (channels_last, torch.clone))
    for case, layout in a_third(every, TILES.index(tile), everything):
        args, options = operands("fp32", case, layout, "cuda")
        problem = prepare("conv2d_weight", *args, **options).problem
        legal = [c for c in DESIGN.configs(problem, LIBRARY.target(args[0].device)) if "PROGRAMS" in c.kwargs]
        chosen = next(c for c in legal if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) == tile[:2])
        run_checked(LIBRARY, "conv2d_weight", "implicit_gemm", *args, config=chosen, **options)


COMPILED = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.conv2d_weight import prepare
from tritonkernels.conv2d_weight.implicit_gemm import DESIGN
from tritonkernels.target import Target

target = Target.named("h200")
x = torch.empty(4, 72, 40, 40, device="meta").to(memory_format=torch.channels_last)
call = prepare(x, (72, 72, 3, 3), x, padding=1)
for config in DESIGN.configs(call.problem, target):
    if (config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"]) == (128, 128):
        break
launch = next(l for l in DESIGN.launches(call.problem, config, *call.parts[0]) if l.name == "cuda_cores")
(code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
print(json.dumps([code.stack_bytes, code.registers, [text.split()[0] for _, text in code.hot_instructions()]]))
"""


@thorough
def test_the_loop_multiplies():
    """A slice is 32 positions, for each of which a thread's 8 x 8 sums take 4 quads. Two programs fit on an SM."""
    stack, registers, loop = json.loads(printed(COMPILED))
    assert stack == 0 and registers <= 128
    assert loop.count("FFMA") == 32 * 64 and loop.count("FFMA") / len(loop) >= 0.88
    assert loop.count("LDS.128") == 32 * 4 and loop.count("LDGSTS.E.BYPASS.128") == 8
