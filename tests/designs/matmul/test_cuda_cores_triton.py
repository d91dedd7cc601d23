"""The Triton design cuda_cores, without a GPU: how operands come, and the machine code. test_gluon_product.py runs it."""

import json

import pytest
import torch

from tests.compiler import printed
from tests.harness import offset_by_one, padded, prepare, short, transposed
from tritonkernels.config import config_of
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul.cuda_cores import DESIGN
from tritonkernels.target import Target

H100 = Target.named("h100")
COPY, QUAD = "LDGSTS.E", "LDGSTS.E.BYPASS.128"
FIRST = config_of({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 8, "SPLIT_K": 1}, 8, 3)


def problem(m, n, k, *batch):
    return prepare("matmul", *(torch.empty(*batch, *shape, device="meta") for shape in ((m, k), (k, n)))).problem


def ways(a, b):
    """How slices of A and of B come: "quads of rows", "quads of K", "K" or "rows"."""
    call = prepare("matmul", a, b)
    (launch,) = DESIGN.launches(call.problem, FIRST, *call.parts[0])
    staging, words = launch.values["staging"], launch.values["words"]

    def way(load, rows):
        if rows.value > 1:
            return "quads of rows"
        along = "K" if load.value.order[0] == 0 else "rows"
        return f"quads of {along}" if max(load.value.size_per_thread) == 4 else along

    return way(staging.LOAD_A, words.A), way(staging.LOAD_B, words.B)


def test_operands_come_as_they_lie():
    flat = torch.empty(2**15)
    a, b = torch.empty(2, 64, 48), torch.empty(48, 64)
    assert ways(a, b) == ("quads of K", "quads of rows")
    assert ways(transposed(a), transposed(b)) == ("quads of rows", "quads of K")
    assert ways(offset_by_one(a), transposed(offset_by_one(b))) == ("K", "quads of K")
    assert ways(a[:, :, :47], b[:47]) == ("quads of K", "quads of rows"), "K may end within a quad: the last slice has masks"
    assert ways(a, padded(torch.empty(48, 63))) == ("quads of K", "rows"), "but not the rows"
    assert ways(a, flat[1 : 1 + 48 * 64].view(48, 64)) == ("quads of K", "rows"), "an address that is not aligned"
    assert ways(a, flat[1 : 1 + 48 * 64].view(64, 48).t()) == ("quads of K", "K")
    assert ways(flat.as_strided((2, 64, 48), (64 * 48 + 2, 48, 1)), b)[0] == "K", "aligned rows, but matrices that are not"
    assert ways(flat.as_strided((1, 64, 48), (3, 48, 1)), b)[0] == "quads of K", "the stride of one matrix is unused"
    assert ways(flat.as_strided((2, 64, 48), (2, 200, 4)), flat.as_strided((48, 64), (200, 2))) == ("K", "rows")
    assert ways(a[:1].expand(2, 64, 48), b) == ("quads of K", "quads of rows")


@pytest.mark.parametrize("m, n, k", [(128, 580, 133808), (24, 64, 336896)])
def test_few_tiles_are_split_by_the_model(m, n, k):
    _, config = LIBRARY.choose(problem(m, n, k), H100, "cuda_cores")
    assert config.kwargs["SPLIT_K"] >= 16


# Prints [stack, opcodes of the loop, accesses with bank conflicts] of the largest tile, for a layout and sizes.
COMPILE = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tests.designs.gluon.compiled import conflicts
from tritonkernels.config import config_of
from tritonkernels.matmul import cuda_cores, prepare
from tritonkernels.target import Target

target, layout = Target.named("h200"), sys.argv[1]
m, n, k = map(int, sys.argv[2:])
a = torch.empty(m, k, device="meta") if layout[0] == "r" else torch.empty(k, m, device="meta").t()
b = torch.empty(k, n, device="meta") if layout[1] == "r" else torch.empty(n, k, device="meta").t()
call = prepare(a, b)
config = next(iter(cuda_cores.DESIGN.configs(call.problem, target)))
(launch,) = cuda_cores.DESIGN.launches(call.problem, config, *call.parts[0])
(code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
loop = [text.split()[0] for _, text in code.hot_instructions() if text != "LDS RZ, [RZ]"]  # which ptxas puts in
print(json.dumps([code.stack_bytes, loop, conflicts(launch.values["staging"]._asdict(), config)]))
"""


@short(lambda layout, aligned: (layout, aligned) == ("rr", True))
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("layout", ["rr", "rc", "cr", "cc"])
def test_the_loop_multiplies(layout, aligned):
    """A slice is 32 of K, for each of which a thread's 8 x 8 sums take 4 quads. A thread copies 8 quads, or 32 floats."""
    sizes = ("4096", "4096", "4096") if aligned else ("4095", "4097", "4093")
    stack, loop, conflicts = json.loads(printed(COMPILE, layout, *sizes))
    assert stack == 0 and conflicts == []
    assert loop.count("FFMA") == 32 * 64 and loop.count("FFMA") / len(loop) >= (0.91 if aligned else 0.88)
    assert [opcode for opcode in loop if opcode.startswith("LDS")] == ["LDS.128"] * 32 * 4
    assert (loop.count(QUAD), loop.count(COPY)) == ((8, 0) if aligned else (0, 32))
