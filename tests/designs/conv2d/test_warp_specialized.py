"""The Triton design conv2d.warp_specialized: on the CPU its partitions as threads (gluon_threads), its machine code."""

import dataclasses
import functools
import itertools
import json

import pytest
import torch

from cuda_reference.launch import LIBRARY as CUDA
from tests import gluon_threads
from tests.compiler import printed
from tests.harness import (
    a_third,
    available_on,
    channels_last,
    cropped,
    first_dim_inside,
    long,
    prepare,
    random,
    run_checked,
    short,
    step_two,
    thorough,
)
from tritonkernels.config import config_of
from tritonkernels.conv2d.warp_specialized import ADD, DESIGN, TILES
from tritonkernels.launch import LIBRARY
from tritonkernels.numerics import judge
from tritonkernels.target import Target

from .test_warp_specialized_cuda import CASES, CASES_OF_TF32, between_neighbours, operands

H200 = Target.named("h200")


def config(programs=5, tile=(64, 128, 4), shares=True):
    numbers = dict(zip(("BLOCK_M", "BLOCK_N", "STAGES"), tile)) | {"SHARES": shares, "PROGRAMS": programs}
    return config_of(numbers, 4, 1)


def check(args, options, config, seed=0, wide=False, out=None):
    """Runs the launches: the one in Gluon by threads, the others in the interpreter."""
    call = prepare("conv2d", *args, out=out, **options)
    call.result.fill_(float("nan"))
    for launch in DESIGN.launches(dataclasses.replace(call.problem, wide=wide), config, *call.parts[0]):
        if launch.name == "warp_specialized":
            gluon_threads.run(launch, seed)
        else:
            launch.run()
    verdict = judge(call.problem, call.result, *args, **options)
    assert verdict.ok, f"{call.problem}: error {verdict.error:.3g} above the bound {verdict.bound:.3g}"
    return call.result


@pytest.mark.parametrize("layout", (channels_last, torch.clone))
@pytest.mark.parametrize("name", CASES)
def test_sizes(name, layout):
    args, options = operands(CASES[name], layout)
    check(args, options, config())
    check((*args[:2], None), options, config(tile=(128, 256, 4)))


@pytest.mark.parametrize("layout, tile", [(channels_last, (128, 128, 4)), (torch.clone, (256, 64, 4))])
@pytest.mark.parametrize("name", CASES_OF_TF32)
def test_sizes_of_tf32(name, layout, tile):
    """By consumers side by side, one above the other, and with slices in two parts."""
    args, options = operands(CASES_OF_TF32[name], layout, dtype=torch.float32)
    check(args, options, config())
    check((*args[:2], None), options, config(tile=tile))


@pytest.mark.parametrize("which", (0, 1))
def test_operands_are_rounded_to_tf32(which):
    for layout in (channels_last, torch.clone):
        args, options, result = between_neighbours(which, layout)
        assert (check(args, options, config()) == result).all()


@pytest.mark.parametrize("programs, tile", [(6, (64, 128, 4)), (64, (64, 128, 4)), (6, (128, 128, 4)), (64, (128, 128, 4))])
def test_pieces(programs, tile, everything):
    """Whole tiles, and heads and tails of one; heads of all tiles."""
    args, options = operands(((1, 72, 21, 21), (8, 72, 3, 3), {}))
    for seed in range(2 if everything else 1):
        check(args, options, config(programs, tile), seed)


def beside_nan(shape, dim, dtype, layout):
    """A tensor of the shape and the one that it is the first part of, along that dimension."""
    whole = layout(torch.full([size + 64 * (i == dim) for i, size in enumerate(shape)], float("nan"), dtype=dtype))
    return whole.narrow(dim, 0, shape[dim]), whole


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize("layout", (channels_last, torch.clone, first_dim_inside))
@pytest.mark.parametrize(
    "tile, filters",
    [
        *(((128, 192, 4), filters) for filters in (129, 136, 192, 193)),
        *(((128, 160, 4), filters) for filters in (160, 161)),
        *(((128, 96, 4), filters) for filters in (64, 97)),
        *(((256, 96, 4), filters) for filters in (65, 96)),
    ],
)
def test_filters_of_two_boxes(tile, filters, layout, dtype):
    """Around what the boxes hold, in parts and in whole tiles; nothing is read or written beyond the last filter."""
    (x, weight, bias), options = operands(((1, 40, 9, 15), (filters, 40, 3, 3), {"padding": 1}), layout, dtype=dtype)
    own, _ = beside_nan(weight.shape, 0, dtype, layout)
    out, around = beside_nan((1, filters, 9, 15), 1, dtype, layout)
    args = x, own.copy_(weight), bias
    check(args, options, config(tile=tile), out=out)
    check((*args[:2], None), options, config(tile=tile, shares=False), 1, True, out)
    assert around[:, filters:].isnan().all()


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize("layout", (channels_last, torch.clone))
@pytest.mark.parametrize("filters, tile", [(64, (64, 128, 4)), (97, (128, 96, 4))])
def test_what_follows(dtype, layout, filters, tile):
    """A residual by 16 bytes and one by one, next to NaN; once where programs share a tile."""
    (x, weight, bias), options = operands(((1, 72, 9, 15), (filters, 72, 3, 3), {"padding": 1}), layout, dtype=dtype)
    values = random(1, filters, 9, 15, dtype=dtype)
    for residual in (layout(values), beside_nan(values.shape, 3, dtype, torch.clone)[0].copy_(values)):
        for shares in (True, False):
            follows = {"residual": residual, "activation": "relu"}
            check((x, weight, bias), options | follows, config(tile=tile, shares=shares))
    check((x, weight, None), options | {"activation": "relu"}, config(tile=tile))
    out = layout(values.clone())
    call = prepare("conv2d", x, weight, bias, residual=out, out=out, **options)
    for launch in DESIGN.launches(call.problem, config(tile=tile), *call.parts[0]):
        gluon_threads.run(launch) if launch.name == "warp_specialized" else launch.run()
    assert judge(call.problem, out, x, weight, bias, residual=values, **options).ok


def test_programs_that_add_parts_divide_every_tile():
    assert all(positions * filters % ADD.kwargs["BLOCK"] == 0 for positions, filters, _ in TILES)


def test_offsets_of_64_bits():
    check(*operands(CASES["strides and dilation"]), config(), wide=True)


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
@pytest.mark.parametrize("layout", (cropped, step_two))
def test_layouts(layout, dtype):
    args, options = operands(CASES["strides and dilation"], layout, dtype=dtype)
    shape = prepare("conv2d", *args, **options).result.shape
    check(args, options, config(), out=layout(torch.empty(shape, dtype=dtype)))


def test_refusals():
    def refusal(target=H200, dtype=torch.float16, **options):
        args, more = operands(((2, 16, 9, 9), (16, 16 // options.get("groups", 1), 3, 3), options), dtype=dtype)
        return DESIGN.refuses(prepare("conv2d", *args, **more).problem, target)

    assert refusal() is None and refusal(dtype=torch.float32) is None
    assert "fp64" in refusal(dtype=torch.float64) and "2 groups" in refusal(groups=2)
    assert "sm_80" in refusal(target=Target.named("a100")) and "interpreter" in refusal(target=Target.named("interpreter"))


@pytest.mark.parametrize("library", (LIBRARY, CUDA), ids=lambda library: library.package)
@pytest.mark.parametrize("layout", (channels_last, torch.clone))
def test_tf32_is_chosen_where_it_is_predicted_to_be_faster(library, layout):
    """By the figures of 16 bits, where records have none of tf32."""
    x, weight = (layout(torch.empty(shape, device="meta")) for shape in ((4, 640, 32, 32), (640, 640, 3, 3)))
    problem = prepare("conv2d", x, weight, padding=1, precision="tf32").problem
    assert library.ranking(problem, H200)[0].design.name == "warp_specialized"


@long(lambda: True)  # each case is a kernel to compile for 5 s
@pytest.mark.gpu
@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float32))
def test_on_hopper(tile, dtype, everything):
    available_on(LIBRARY, "cuda")
    if LIBRARY.target(torch.device("cuda")).arch != 90:
        pytest.skip("no wgmma")
    turn = TILES.index(tile) + (dtype == torch.bfloat16) + 2 * (dtype == torch.float32)
    for case, layout in a_third(itertools.product(CASES_OF_TF32.values(), (channels_last, torch.clone)), turn, everything):
        args, options = operands(case, layout, "cuda", dtype)
        numbers = dict(zip(("BLOCK_M", "BLOCK_N", "STAGES"), tile)) | {"SHARES": True}
        run_checked(LIBRARY, "conv2d", "warp_specialized", *args, config=numbers, **options)


COMPILED = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.conv2d import prepare
from tritonkernels.conv2d.warp_specialized import DESIGN
from tritonkernels.target import Target

target = Target.named("h200")
kind, *tile = sys.argv[1:]
x, weight = (torch.empty(*s, dtype=getattr(torch, kind), device="meta").to(memory_format=torch.channels_last)
             for s in ((4, 72, 40, 40), (72, 72, 3, 3)))
call = prepare(x, weight, padding=1, precision="tf32" if kind == "float32" else None)
configs = DESIGN.configs(call.problem, target)
config = next(c for c in configs if [c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]] == [*map(int, tile)])
launch = next(l for l in DESIGN.launches(call.problem, config, *call.parts[0]) if l.name == "warp_specialized")
kernel = compile_launch(launch, target)
(code,) = sass.read(kernel.asm["cubin"]).values()
print(json.dumps({"hot": code.hot_loop(), "all": [text for _, text in code.instructions], "stack": code.stack_bytes,
                  "fits": kernel.metadata.shared <= target.shared_per_block}))
"""


@functools.cache
def compiled(kind, tile=(128, 128)):
    return json.loads(printed(COMPILED, kind, *map(str, tile)))


@short(lambda kind, tile: (kind, tile) == ("float16", (256, 96)))
@pytest.mark.parametrize(
    "kind, tile",
    [
        ("float16", (128, 128)),
        ("float32", (128, 256)),
        ("float32", (256, 128)),
        *itertools.product(("float16", "float32"), ((128, 192), (128, 160), (128, 96), (256, 96))),
    ],
)
def test_products_run_asynchronously(kind, tile):
    """All products of a box of filters follow one arrival, and in tf32 with 128 rows, whose slices are loaded in two parts, all
    of a part."""
    hot = compiled(kind, tile)["hot"]
    at_once = 4 * (tile[0] // 128 if kind == "float16" else 1)
    assert sum(n for opcode, n in hot.items() if opcode.startswith("HGMMA")) == at_once * hot["WARPGROUP.ARRIVE"] > 0
    assert compiled(kind, tile)["stack"] == 0 and compiled(kind, tile)["fits"]


@thorough
@pytest.mark.parametrize("kind", ("float16", "float32"))
def test_copies_and_results_are_of_16_bytes(kind):
    code = compiled(kind)["all"]
    copies = [text for text in code if text.startswith("LDGSTS")]
    assert len(copies) == 8 and all(".128" in text for text in copies)
    assert sum(text.startswith("STG.E.128") for text in code) >= 16
