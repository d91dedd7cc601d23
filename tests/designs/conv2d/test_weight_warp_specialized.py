"""The Triton design conv2d_weight.warp_specialized: on the CPU its partitions as threads (gluon_threads), its machine code."""

import functools
import json

import numpy
import pytest
import torch

from tests import gluon_threads
from tests.compiler import printed
from tests.harness import a_third, available_on, cropped, long, prepare, run_checked
from tritonkernels.config import config_of
from tritonkernels.conv2d_weight import warp_specialized
from tritonkernels.conv2d_weight.warp_specialized import DESIGN, TILES
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

from .test_weight_warp_specialized_cuda import CASES, SHARED, SHARED_GROUPS
from .weight_gradients import check_by_threads, operands

H200 = Target.named("h200")


def config(programs=5, tile=(64, 128, 3)):
    return config_of(dict(zip(("BLOCK_M", "BLOCK_N", "STAGES"), tile)) | {"PROGRAMS": programs}, 4, 1)


check = functools.partial(check_by_threads, DESIGN, "warp_specialized")


@pytest.mark.parametrize("name", CASES)
def test_sizes(name):
    for tile in ((64, 128, 3), (128, 256, 3)):
        check(*operands("fp16", CASES[name]), config(5, tile))


@pytest.mark.parametrize("programs, tile", [(5, (64, 128, 3)), (5, (128, 256, 4)), (2, (64, 128, 3)), (20, (128, 256, 3))])
def test_pieces(programs, tile):
    """Whole tiles; heads and tails; whole tiles, then heads of one; many heads."""
    args, options = operands("fp16", SHARED)
    for seed in range(2):
        check(args, options, config(programs, tile), seed)


@pytest.mark.parametrize("groups", (1, 2))
def test_images_of_one_pixel(groups):
    """Their rows and columns are stepped along to taps outside, from addresses of whole chunks."""
    check(*operands("fp16", ((3, 16, 1, 1), (16, 16 // groups, 3, 3), {"padding": 1, "groups": groups}), torch.clone), config())


def test_offsets_of_copies_may_need_64_bits(monkeypatch):
    """Copies have more channels than what they are of."""
    args, options = operands("fp16", CASES["channels that are no chunks"])
    call = prepare("conv2d_weight", *args, **options)
    monkeypatch.setattr(warp_specialized, "needs_wide_offsets", lambda *copies: copies[0].shape[1] == 16)
    (launch,) = (l for l in DESIGN.launches(call.problem, config(), *call.parts[0]) if l.name == "warp_specialized")
    assert not call.problem.wide and launch.values["tile"].WIDE.value


def test_pieces_of_bands():
    """Whole tiles, then heads and tails of one."""
    check(*operands("fp16", SHARED_GROUPS), config(5, (64, 256, 3)))


def test_no_element_is_stored_twice(monkeypatch):
    """Neighbouring bands have rows in common, whose sums would be added up in another order."""
    store, untouched = gluon_threads.store, []

    def noting(pointers, values, mask):
        untouched.append(numpy.isnan(pointers.base[pointers.offsets[mask]]).all())
        store(pointers, values, mask)

    monkeypatch.setattr(gluon_threads, "store", noting)
    check(*operands("fp16", CASES["bands of five groups, and of three"]), config())
    assert untouched and all(untouched)


def test_offsets_of_64_bits():
    check(*operands("fp16", CASES["strides and dilation"]), config(), wide=True)
    check(*operands("fp16", CASES["bands of five groups, and of three"]), config(), wide=True)


@pytest.mark.parametrize("layout", (torch.clone, cropped))
def test_layouts(layout):
    args, options = operands("fp16", CASES["strides and dilation"], layout)
    check(args, options, config())


def test_refusals():
    def refusal(kind="fp16", target=H200, **options):
        args, more = operands(kind, ((2, 16, 9, 9), (16, 16 // options.get("groups", 1), 3, 3), options))
        return DESIGN.refuses(prepare("conv2d_weight", *args, **more).problem, target)

    assert refusal() is None and refusal(groups=2) is None
    assert "tf32" in refusal("tf32")
    assert "sm_80" in refusal(target=Target.named("a100")) and "interpreter" in refusal(target=Target.named("interpreter"))


@long(lambda: True)  # each case is a kernel to compile for 5 s
@pytest.mark.gpu
@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("kind", ("fp16", "bf16"))
def test_on_hopper(tile, kind, everything):
    """The tile, or of groups, which have few of them, the first that they have."""
    available_on(LIBRARY, "cuda")
    if LIBRARY.target(torch.device("cuda")).arch != 90:
        pytest.skip("no wgmma")
    for case in (*a_third(CASES.values(), TILES.index(tile) + (kind == "bf16"), everything), SHARED):
        args, options = operands(kind, case, device="cuda")
        legal = list(DESIGN.configs(prepare("conv2d_weight", *args, **options).problem, H200))
        own = next((c for c in legal if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) == tile[:2]), legal[0])
        run_checked(LIBRARY, "conv2d_weight", "warp_specialized", *args, config=own, **options)


COMPILED = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.conv2d_weight import prepare
from tritonkernels.conv2d_weight.warp_specialized import DESIGN
from tritonkernels.target import Target

target = Target.named("h200")
x = torch.empty(4, 72, 40, 40, dtype=torch.float16, device="meta").to(memory_format=torch.channels_last)
call = prepare(x, (72, 72, 3, 3), x, padding=1)
config = next(c for c in DESIGN.configs(call.problem, target) if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) == (128, 128))
launch = next(l for l in DESIGN.launches(call.problem, config, *call.parts[0]) if l.name == "warp_specialized")
kernel = compile_launch(launch, target)
(code,) = sass.read(kernel.asm["cubin"]).values()
print(json.dumps({"ptx": kernel.asm["ptx"], "hot": code.hot_loop(), "all": [text for _, text in code.instructions]}))
"""


@functools.cache
def compiled():
    return json.loads(printed(COMPILED))


def test_products_run_asynchronously():
    hot = compiled()["hot"]
    assert sum(n for opcode, n in hot.items() if opcode.startswith("HGMMA")) == 4 * hot["WARPGROUP.ARRIVE"] > 0


def test_copies_are_of_16_bytes():
    copies = [text for text in compiled()["all"] if text.startswith("LDGSTS")]
    assert len(copies) == 4 * 4 and all(".128" in text for text in copies)


def test_a_slice_is_published_when_all_threads_copies_have_landed_and_are_fenced():
    ptx = compiled()["ptx"]
    publications = [part for part in ptx.split("mbarrier.arrive.shared")[:-1] if "cp.async.wait_group" in part]
    assert publications
    for part in publications:
        found = [part.rindex(each) for each in ("cp.async.wait_group", "fence.proxy.async", "bar.sync")]
        assert found == sorted(found)
