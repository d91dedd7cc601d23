"""The Triton design conv2d_weight.implicit_gemm in fp32 and tf32 by Gluon: on the CPU as threads (gluon_threads), its code."""

import dataclasses
import functools
import itertools
import json
import math

import pytest
import torch

from tests.compiler import printed
from tests.harness import a_third, available_on, channels_last, cropped, prepare, run_checked, short, thorough
from tritonkernels.analysis.banks import degrees
from tritonkernels.analysis.occupancy import occupancy
from tritonkernels.config import config_of
from tritonkernels.conv2d_weight.implicit_gemm import DESIGN
from tritonkernels.conv2d_weight.parts.register_products import TILES, bands_and_cut
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

from .test_weight_cuda_cores import CASES, OWN, SHARED
from .weight_gradients import check_by_threads, operands

SIZES = {name: case for name, case in (CASES | OWN).items() if "groups" not in case[2]}
H200 = Target.named("h200")
KINDS = {"fp32": "ieee", "tf32": "tf32"}
every_kind = pytest.mark.parametrize("kind", KINDS)


def config(programs=5, tile=(64, 64, 32), stages=2):
    return config_of(dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_L"), tile)) | {"PROGRAMS": programs}, 2, stages, 160)


def of_tile(config):
    return *(config.kwargs[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_L")), config.num_warps


check = functools.partial(check_by_threads, DESIGN, "register_products")


@every_kind
@pytest.mark.parametrize("name", SIZES)
def test_sizes(name, kind):
    args, options = operands(kind, SIZES[name])
    check(args, options, config())
    check(args, options, config(2, (128, 64, 32), stages=3))


@pytest.mark.parametrize(
    "kind, programs, form",
    [
        ("fp32", 2, (2, 1, 0)),
        ("fp32", 5, (0, 2, 1)),
        ("fp32", 60, (0, 22, 0)),
        ("tf32", 2, (2, 1, 0)),
        ("tf32", 5, (0, 2, 1)),
        ("tf32", 60, (0, 8, 0)),
    ],
)
def test_pieces(kind, programs, form):
    """Whole tiles; heads and tails; many heads. In two orders of what threads do."""
    args, options = operands(kind, SHARED)
    _, share = bands_and_cut(prepare("conv2d_weight", *args, **options).problem, config(programs))
    assert (share.whole, share.heads, share.sharers) == form
    for seed in range(2):
        check(args, options, config(programs), seed)


@every_kind
def test_offsets_of_64_bits(kind):
    check(*operands(kind, CASES["dilated"]), config(), wide=True)


@every_kind
@pytest.mark.parametrize("layout", (torch.clone, cropped))
def test_layouts(layout, kind):
    """Operands that are copied into channels_last first, and results in NCHW."""
    check(*operands(kind, CASES["first layer"], layout), config())


@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")  # an infinity times padding's zeros
@every_kind
@pytest.mark.parametrize("value", (math.inf, math.nan))
@pytest.mark.parametrize("name", ("65 positions, a chunk more than a tile", "a chunk", "dilated"))
def test_what_is_not_there_is_no_factor(name, value, kind):
    """No sum but those of its products gets anything from an infinity or a NaN at the first position, or at the last one."""
    for which, place in ((0, 0), (2, 0), (0, -1), (2, -1)):
        args, options = operands(kind, SIZES[name])
        args[which][place, place, place, place] = value
        check(args, options, config())


def test_banks():
    """In tf32 a warp reads fragments, 8 neighbouring channels of 4 positions, and writes chunks without conflicts. In slices of
    fp32 it would not."""

    def slices(kind):
        args, options = operands(kind, CASES["a chunk"])
        call = prepare("conv2d_weight", *args, **options)
        (stages,) = (
            x.values["stages"] for x in DESIGN.launches(call.problem, config(), *call.parts[0]) if "stages" in x.values
        )
        return stages.SHARED.value

    def place(layout, span, position, channel):
        phase = position // layout.per_phase % layout.max_phase
        return 4 * (position * span + (channel // layout.vec ^ phase) * layout.vec + channel % layout.vec)

    def fragment(layout, span, position, channel):
        return degrees(lambda lane: place(layout, span, position + lane % 4, channel + lane // 4))

    def chunks(layout, span):
        return degrees(lambda lane: place(layout, span, lane // 8, lane % 8 * 4), width=16)

    swizzled, plain = slices("tf32"), slices("fp32")
    for span in (64, 128):
        for position, channel in itertools.product(range(0, 32, 4), range(0, span, 8)):
            assert fragment(swizzled, span, position, channel) == [1]
        assert chunks(swizzled, span) == [1] * 4 and fragment(plain, span, 0, 0) == [4]


def test_which_problems_have_these_tiles():
    def found(dtype=torch.float32, target=H200, groups=1, **options):
        x = channels_last(torch.empty(2, 64, 56, 56, dtype=dtype, device="meta"))
        call = prepare("conv2d_weight", x, (64, 64 // groups, 1, 1), x, groups=groups, **options)
        return [config for config in DESIGN.configs(call.problem, target) if "PROGRAMS" in config.kwargs]

    for precision, tiles in TILES.items():
        for name in ("sm_80", "sm_86", "h200", "sm_100", "sm_120"):
            configs = found(target=Target.named(name), precision=precision)
            assert [of_tile(config) for config in configs[::2]] == [tile[:4] for tile in tiles], name
            assert len(configs) == 2 * len(tiles)
        large = [c.kwargs["PROGRAMS"] for c in found(precision=precision) if c.kwargs["BLOCK_M"] == c.kwargs["BLOCK_N"] == 128]
        assert set(large) == {132, 264}
        assert not found(groups=2, precision=precision)
        assert not any(found(target=Target.named(name), precision=precision) for name in ("sm_75", "interpreter", "mi300x"))
    assert not found(torch.float16) and not found(torch.float64)


@every_kind
def test_work(kind):
    """Its products are of the problem's precision, in slices of as many stages as are allocated."""
    x = channels_last(torch.empty(2, 64, 56, 56, device="meta"))
    problem = prepare("conv2d_weight", x, (64, 64, 1, 1), x, precision=KINDS[kind]).problem
    main = max(DESIGN.work(problem, config(), H200), key=lambda work: work.flops)
    assert (main.unit, main.registers, main.shared) == (KINDS[kind], 160, 2 * 32 * (64 + 64) * 4)


def test_registers():
    """A thread may have more where ptxas would spill at 128."""

    def most(precision, name, wide=False):
        x = channels_last(torch.empty(2, 64, 56, 56, device="meta"))
        problem = prepare("conv2d_weight", x, (64, 64, 1, 1), x, precision=precision).problem
        return next(
            config.maxnreg
            for config in DESIGN.configs(dataclasses.replace(problem, wide=wide), Target.named(name))
            if "PROGRAMS" in config.kwargs
        )

    assert [most("ieee", name) for name in ("sm_80", "sm_89", "h200", "sm_100")] == [128, 128, 128, 255]
    assert [most("tf32", name) for name in ("sm_80", "sm_89", "h200", "sm_100")] == [255, 255, 128, 255]
    assert most("ieee", "h200", wide=True) == most("tf32", "h200", wide=True) == 255


@pytest.mark.gpu
@pytest.mark.parametrize("kind, tile", [(kind, tile) for kind in KINDS for tile in TILES[KINDS[kind]]], ids=str)
def test_on_a_gpu(kind, tile, everything):
    available_on(LIBRARY, "cuda")
    every = itertools.product((*SIZES.values(), SHARED), (channels_last, torch.clone))
    for case, layout in a_third(every, TILES[KINDS[kind]].index(tile), everything):
        args, options = operands(kind, case, layout, "cuda")
        problem = prepare("conv2d_weight", *args, **options).problem
        legal = [c for c in DESIGN.configs(problem, LIBRARY.target(args[0].device)) if "PROGRAMS" in c.kwargs]
        chosen = next(config for config in legal if of_tile(config) == tile[:4])
        run_checked(LIBRARY, "conv2d_weight", "implicit_gemm", *args, config=chosen, **options)


COMPILED = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.conv2d_weight import prepare
from tritonkernels.conv2d_weight.implicit_gemm import DESIGN
from tritonkernels.target import Target

target, precision, tile = Target.named(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
x = torch.empty(4, 72, 40, 40, device="meta").to(memory_format=torch.channels_last)
call = prepare(x, (72, 72, 3, 3), x, padding=1, precision=precision)
for config in DESIGN.configs(call.problem, target):
    if "PROGRAMS" in config.kwargs and [config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"], config.num_warps] == tile:
        break
launch = next(l for l in DESIGN.launches(call.problem, config, *call.parts[0]) if l.name == "register_products")
kernel = compile_launch(launch, target)
(code,) = sass.read(kernel.asm["cubin"]).values()
loop = [text for _, text in code.hot_instructions() if text != "LDS RZ, [RZ]"]  # which does nothing, before copies
print(json.dumps([code.stack_bytes, code.registers, kernel.metadata.shared, [text.split()[0] for text in loop]]))
"""


def compiled(target, precision, tile):
    block_m, block_n, _, num_warps, *_ = tile
    return json.loads(printed(COMPILED, target, precision, json.dumps((block_m, block_n, num_warps))))


@thorough
def test_the_loop_multiplies():
    """A slice is 32 positions, for each of which a thread's 8 x 8 sums take 4 quads. Two programs fit on an SM."""
    stack, registers, _, loop = compiled("h200", "ieee", TILES["ieee"][0])
    assert stack == 0 and registers <= 128
    assert loop.count("FFMA") == 32 * 64 and loop.count("FFMA") / len(loop) >= 0.88
    assert loop.count("LDS.128") == 32 * 4 and loop.count("LDGSTS.E.BYPASS.128") == 8


@short(lambda tile, target: (tile, target) == (TILES["tf32"][0], "h200"))
@pytest.mark.parametrize("target", ("sm_80", "h200", "sm_100", "sm_120"))
@pytest.mark.parametrize("tile", TILES["tf32"], ids=str)
def test_the_loop_multiplies_on_tensor_cores(tile, target):
    """For 8 positions of a warp's M x N sums a thread reads and rounds (M + N) / 4 words, for M / 16 times N / 8 products. It
    copies its share of a slice by 16 bytes. Nothing is spilled."""
    block_m, block_n, block_l, num_warps, *_ = tile
    stack, registers, shared, loop = compiled(target, "tf32", tile)
    assert stack == 0 and not any(opcode.startswith(("LDL", "STL")) for opcode in loop)
    m, n = block_m // (num_warps // 2), block_n // 2
    count = {name: sum(opcode.startswith(name) for opcode in loop) for name in ("HMMA", "LDS", "LDGSTS", "F2FP.TF32")}
    assert count["HMMA"] == loop.count("HMMA.1688.F32.TF32") == block_l // 8 * (m // 16) * (n // 8)
    assert count["LDS"] == loop.count("LDS") == block_l // 8 * (m + n) // 4
    assert count["F2FP.TF32"] == (0 if target == "sm_80" else count["LDS"])
    chunks = block_l * (block_m + block_n) // 4 // (32 * num_warps)
    assert count["LDGSTS"] == loop.count("LDGSTS.E.BYPASS.128") == chunks
    assert target != "h200" or occupancy(H200, 32 * num_warps, registers, shared).blocks >= 2
