"""The lessons of Hopper in Gluon: results of an emulation, and the code for sm_90, where it shows what that does not model."""

import functools
import importlib
import itertools
import json
import re

import numpy
import pytest
import torch

from tests import gluon_threads
from tests.compiler import printed
from tests.harness import short
from tritonkernels.config import config_of
from tritonkernels.matmul import prepare
from tritonkernels.target import Target

LADDER = ("wgmma", "tma", "specialized", "tile_loop", "in_turn")
PROBLEMS = {  # (M, N, K), layouts of A and B
    "edges": (200, 300, 333, "row", "row"),
    "transposed": (264, 520, 648, "col", "col"),
    "less than a slice": (130, 8, 24, "row", "col"),
    "one": (1, 1, 1, "row", "row"),
    "no K": (70, 40, 0, "row", "row"),
}


def operand(generator, rows, cols, layout):
    shape = (rows, cols) if layout == "row" else (cols, rows)
    values = torch.randint(-4, 5, shape, generator=generator).to(torch.float16)
    return values if layout == "row" else values.t()


@pytest.mark.parametrize("shape", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("name", LADDER)
def test_results_of_partitions_in_any_order(name, shape):
    """Small whole numbers, so that every sum is exact."""
    m, n, k, a_layout, b_layout = shape
    generator = torch.Generator().manual_seed(m)
    a, b = operand(generator, m, k, a_layout), operand(generator, k, n, b_layout)
    c = torch.randint(-9, 10, (m, n), generator=generator).float()
    out = torch.full((m, n + 3), 77.0)[:, 1 : n + 1]
    call = prepare(a, b, c=c, alpha=2.0, beta=0.5, out_dtype=torch.float32, out=out)
    design = importlib.import_module(f"tritonkernels.matmul.{name}").DESIGN
    (config,) = design.configs(call.problem, Target.named("h200"))
    config = config_of(config.kwargs | ({"PROGRAMS": 2} if "PROGRAMS" in config.kwargs else {}), config.num_warps)
    *packs, launch = design.launches(call.problem, config, *call.parts[0])
    for pack in packs:
        pack.run()
    gluon_threads.run(launch)
    expected = 2 * a.double() @ b.double() + c.double() / 2
    numpy.testing.assert_array_equal(out.numpy(), expected.float().numpy())
    assert (out._base[:, [0, -1, -2]] == 77).all(), "nothing outside is written"


COMPILED = """
import importlib, json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.matmul import prepare
from tritonkernels.target import Target

target = Target.named("h200")
matrix = torch.empty(4096, 4096, dtype=torch.bfloat16, device="meta")
call = prepare(matrix, matrix)
design = importlib.import_module("tritonkernels.matmul." + sys.argv[1]).DESIGN
(config,) = design.configs(call.problem, target)
(launch,) = design.launches(call.problem, config, *call.parts[0])
kernel = compile_launch(launch, target)
(code,) = sass.read(kernel.asm["cubin"]).values()
print(json.dumps({
    "grid": launch.grid[0], "ir": kernel.asm["ttgir"], "ptx": kernel.asm["ptx"], "stack": code.stack_bytes,
    "hot": [text for _, text in code.hot_instructions()], "all": [text for _, text in code.instructions],
}))
"""


@functools.cache
def compiled(name):
    return json.loads(printed(COMPILED, name))


def count(opcode, instructions):
    return sum(text.startswith(opcode) for text in instructions)


STEPS = (
    "for yield barrier local_store fence_async_shared warp_group_dot_wait warp_group_dot barrier_expect init_barrier "
    "wait_barrier arrive_barrier"
)


def steps(name):
    """The operations whose order counts, in the order of the program; of several of a kind the first."""
    pattern = rf"\b(?:scf|gpu|ttg|ttng)\.({STEPS.replace(' ', '|')})\b"
    return " ".join(step for step, _ in itertools.groupby(re.findall(pattern, compiled(name)["ir"])))


def test_stores_are_fenced_before_the_barrier_after_which_wgmma_reads_them():
    assert steps("wgmma") == "for barrier local_store fence_async_shared barrier warp_group_dot yield"


def test_all_warps_know_that_a_product_has_ended_before_its_place_is_filled():
    before, loop = steps("tma").split(" for ")
    assert before.startswith("init_barrier fence_async_shared barrier barrier_expect")
    assert loop.startswith("wait_barrier warp_group_dot warp_group_dot_wait barrier barrier_expect yield")


@short(lambda name: name == "specialized")
@pytest.mark.parametrize("name", LADDER[2:])
def test_all_warps_of_a_consumer_have_multiplied_a_slice_before_its_place_is_given_back(name):
    """One thread arrives for its warpgroup. TMA sees the barriers before the partitions begin."""
    assert steps(name).startswith(" ".join(["init_barrier fence_async_shared barrier"] * (3 if name == "in_turn" else 2)))
    ptx = compiled(name)["ptx"]
    parts = re.split(r"mbarrier\.arrive\.shared", ptx)[:-1]
    given_back = [part for part in parts if "wgmma.wait_group" in part]
    assert len(given_back) >= 2
    for part in given_back:
        assert "bar.sync" in part[part.rindex("wgmma.wait_group") :]


@pytest.mark.parametrize("name", LADDER)
def test_products_run_asynchronously_out_of_shared_memory(name):
    """ptxas that cannot keep products in flight waits for each; one that spills shows a stack."""
    code, wgmmas = compiled(name), {"wgmma": 8, "tma": 8, "specialized": 4, "tile_loop": 4, "in_turn": 12}[name]
    loops = 1 if name in LADDER[:2] else 2
    assert not code["stack"] and not count("LDSM", code["all"])
    assert count("HGMMA", code["all"]) == loops * wgmmas and count("HGMMA", code["hot"]) == wgmmas
    assert count("WARPGROUP.ARRIVE", code["all"]) == loops * (3 if name == "in_turn" else 1)
    assert set(re.findall(r"wgmma\.wait_group\S* (\d)", code["ptx"])) == {
        "wgmma": {"0"}, "tma": {"1", "0"}, "specialized": {"1", "0"}, "tile_loop": {"1", "0"}, "in_turn": {"3", "0"},
    }[name]  # fmt: skip


@pytest.mark.parametrize("name", LADDER)
def test_each_technique_is_in_the_machine_code(name):
    code = compiled(name)
    by_tma = name != "wgmma"
    assert (count("UTMALDG", code["all"]) > 0) == by_tma and (count("LDG", code["all"]) > 0) != by_tma
    registers = set(map(int, re.findall(r"setmaxnreg\S+\s+(\d+)", code["ptx"])))
    assert {24, 240} <= registers if name in LADDER[2:] else not registers
    assert code["grid"] == {"wgmma": 1024, "tma": 1024, "specialized": 512, "tile_loop": 132, "in_turn": 132}[name]
