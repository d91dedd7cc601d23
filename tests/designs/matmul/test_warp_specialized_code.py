"""The machine code of the Triton design warp_specialized for Hopper: what a barrier orders is not seen in a result."""

import re

from tests.compiler import printed

COMMON = """
import torch
from perf.offline import compile_launch
from tritonkernels.matmul import prepare, warp_specialized
from tritonkernels.target import Target

target = Target.named("h100")

def launch_of(call, config):
    return list(warp_specialized.DESIGN.launches(call.problem, config, *call.parts[0]))[-1]

def show(kind, launch):
    print(compile_launch(launch, target).asm[kind], end="THE NEXT")
"""


def shown(program):
    return printed(COMMON + program).split("THE NEXT")[:-1]


MIDDLE_CONFIG = """
matrix = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
for options in ({}, {"c": matrix, "beta": 1.0}):
    call = prepare(matrix, matrix, **options)
    show("ptx", launch_of(call, list(warp_specialized.DESIGN.configs(call.problem, target))[1]))
"""


def test_all_warps_have_read_a_slice_before_its_place_is_given_back():
    """One thread arrives for its warpgroup. And TMA reads what all warps have stored, once it has read what was there. Of C
    loads under way count, too: TMA's copies are of another proxy, so each thread has a fence before the barrier."""
    plain, with_c = shown(MIDDLE_CONFIG)
    places = r"mbarrier\.arrive\.shared"
    for ptx, needed, then in (
        (plain, ("wgmma.wait_group", "bar.sync"), places),
        (plain, ("cp.async.bulk.wait_group.read", "fence.proxy.async", "bar.sync"), r"cp\.async\.bulk\.tensor\.3d\.global"),
        (with_c, ("ldmatrix", "fence.proxy.async", "bar.sync"), places),
    ):
        parts = [part for part in re.split(then, ptx)[:-1] if needed[0] != "ldmatrix" or "ldmatrix" in part]
        assert len(parts) >= 4
        for part in parts:
            found = [part.rindex(each) for each in needed]
            assert found == sorted(found), "the barrier comes last"


BIAS = """
a, b, bias = (torch.empty(*shape, dtype=torch.float16, device="meta") for shape in ((4096, 512), (512, 4096), (4096,)))
call = prepare(a, b, bias=bias)
configs = [c for c in warp_specialized.DESIGN.configs(call.problem, target) if c.kwargs["SPLIT_K"] == 1]
for tile in ((128, 192), (128, 256), (160, 128)):
    config = next(c for c in configs if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) == tile)
    show("ptx", launch_of(call, config))
"""


def test_a_bias_arrives_while_slices_are_multiplied():
    """Each consumer loads it before its products, shares it before it waits for the last one, and reads it box by box."""
    kinds = {
        "load": r"ld\.global",
        "multiply": r"wgmma\.mma_async",
        "share": r"st\.shared\.b16",
        "wait": r"wgmma\.wait_group\S* 0",
        "read": r"ldmatrix|ld\.shared\.b(?!8)",
        "write": r"cp\.async\.bulk\.tensor\.3d\.global",
    }
    any_kind = "|".join(f"(?P<{kind}>{text})" for kind, text in kinds.items())
    for ptx in shown(BIAS):
        found = "".join(match.lastgroup[0] if match.lastgroup != "wait" else "W" for match in re.finditer(any_kind, ptx))
        before, after = "l+m+", "s+W(r+w)+"  # a loop's blocks may stand in either order
        assert re.fullmatch(f"({before}{after}){{2}}|({after}{before}){{2}}", found), found


# A tile for rows that TMA cannot write, and one that is swapped.
BY_POINTERS = """
call = prepare(*(torch.empty(*shape, dtype=torch.bfloat16, device="meta") for shape in ((1000, 512), (512, 1001))))
every = warp_specialized.DESIGN.configs(call.problem, target)
configs = [c for c in every if c.kwargs["BLOCK_M"] * c.kwargs["BLOCK_N"] == 128 * 96]
for swapped in (False, True):
    show("ttgir", launch_of(call, next(config for config in configs if config.kwargs["SWAPPED"] == swapped)))
"""


def test_a_warp_writes_neighbours_of_a_row_that_tma_cannot_write():
    tiles = shown(BY_POINTERS)
    assert len(tiles) == 2
    for ir in tiles:
        stored = set(re.findall(r"tt\.store .*tensor<.*, (#\w+)>", ir))
        assert stored and not re.search("async_tma_copy_local_to_global", ir)
        for layout in stored:
            assert re.search(rf"{layout} = #ttg.blocked<{{.*threadsPerWarp = \[1, 32\].*order = \[1, 0\]", ir), layout


IN_REGISTERS = """
call = prepare(*(torch.empty(1024, 1024, device="meta").t() for _ in range(2)), precision="tf32")
for config in warp_specialized.DESIGN.configs(call.problem, target):
    if config.kwargs["SPLIT_K"] > 1:
        break
    launch = launch_of(call, config)
    if config.kwargs["BLOCK_M"] == 128 and config.kwargs["BLOCK_N"] in (96, 128) and launch.values["tile"].IN_REGISTERS.value:
        show("ptx", launch)
"""


def test_slices_in_registers_have_been_multiplied_before_the_next_ones_are_loaded():
    """Products under way read the registers. So all waits are for all of them, of both accumulators."""
    whole, in_parts = shown(IN_REGISTERS)[:2]
    for ptx, parts in ((whole, 1), (in_parts, 2)):
        products = re.findall(r"wgmma\.mma_async\S* \{[^}]*\}, (\{|%rd)", ptx)
        assert products == ["{"] * 4 * 2 * parts, "of 8 of k, of two consumers, the first operand in registers"
        assert set(re.findall(r"wgmma\.wait_group\S* (\d)", ptx)) == {"0"}
        registers = set(map(int, re.findall(r"setmaxnreg\S+\s+(\d+)", ptx)))
        assert 168 in registers and min(registers) >= 112, "fewer than a product takes, and ptxas makes all of them wait"
        before_waits = [part.partition("wgmma.mma_async")[2] for part in ptx.split("wgmma.wait_group")[:-1]]
        assert len(list(filter(None, before_waits))) == 2 and not any("ld.shared" in part for part in before_waits)
