"""The Triton design dmma, without a GPU: how operands come, and the machine code. test_gluon_product.py runs it."""

import json

import pytest
import torch

from tests.compiler import printed
from tests.harness import offset_by_one, padded, prepare, transposed
from tritonkernels.matmul.dmma import DESIGN, TILES
from tritonkernels.target import Target

# Prints [layout, whether pairs are aligned, tile, warps down and across, registers, stack, opcodes of the loop, conflicts] for
# layouts, sizes and numbers of tiles in sys.argv.
COMPILE = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tests.designs.gluon.compiled import conflicts
from triton.experimental.gluon import language as gl
from tritonkernels.matmul import dmma, prepare
from tritonkernels.matmul.dmma import columns_of_k, rows_of_k
from tritonkernels.target import Target

target = Target.named("h200")
for layout, size, tiles in json.loads(sys.argv[1]):
    a, b = (torch.empty(size, size, dtype=torch.float64, device="meta") for _ in range(2))
    call = prepare(a if layout[0] == "r" else a.t(), b if layout[1] == "r" else b.t())
    for config in list(dmma.DESIGN.configs(call.problem, target))[:tiles]:
        (launch,) = dmma.DESIGN.launches(call.problem, config, *call.parts[0])
        (code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
        loop = [text.split()[0] for _, text in code.hot_instructions() if text != "LDS RZ, [RZ]"]  # which ptxas puts in
        tile = config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"]
        reads = rows_of_k(tile[0]), columns_of_k(tile[1])
        found = conflicts(launch.values["staging"]._asdict(), config, gl.float64, reads)
        warps = launch.values["staging"].ACC.value.warps_per_cta[::2]
        print(json.dumps([layout, size == 4096, tile, warps, code.registers, code.stack_bytes, loop, found]))
"""
EVERY = [(layout, size, 2) for layout in ("rr", "rc", "cr", "cc") for size in (4096, 4095) if (layout, size) != ("rr", 4096)]
EVERY += [("rr", 4096, len(TILES))]
SOME = [("rr", 4096, 2), ("cr", 4096, 2), ("rc", 4095, 2)]  # of `make test`


def ways(a, b):
    """How slices of A and of B come: in "pairs of" or single elements, of "rows" or "K"."""
    call = prepare("matmul", a, b)
    config = next(iter(DESIGN.configs(call.problem, Target.named("h100"))))
    (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
    staging, words = launch.values["staging"], launch.values["words"]

    def way(load, shared, rows):
        along = "K" if shared.value.order[0] == 0 else "rows"
        assert load.value.order == shared.value.order and rows.value == (1 if along == "K" else max(load.value.size_per_thread))
        return f"pairs of {along}" if max(load.value.size_per_thread) == 2 else along

    return way(staging.LOAD_A, staging.SHARED_A, words.A), way(staging.LOAD_B, staging.SHARED_B, words.B)


def test_operands_come_as_they_lie():
    flat = torch.empty(2**15, dtype=torch.float64)
    a, b = (torch.empty(*shape, dtype=torch.float64) for shape in ((2, 64, 48), (48, 64)))
    assert ways(a, b) == ("pairs of K", "pairs of rows")
    odd = (torch.empty(*shape, dtype=torch.float64) for shape in ((64, 46), (46, 62)))
    assert ways(*odd) == ("pairs of K", "pairs of rows"), "an odd number of pairs"
    assert ways(transposed(a), transposed(b)) == ("pairs of rows", "pairs of K")
    assert ways(offset_by_one(a), transposed(offset_by_one(b))) == ("K", "pairs of K")
    assert ways(a[:, :, :47], b[:47]) == ("pairs of K", "pairs of rows"), "K may end within a pair: the last slice has masks"
    assert ways(a, padded(b[:, :63])) == ("pairs of K", "rows"), "but not the rows"
    assert ways(a, flat[1 : 1 + 48 * 64].view(48, 64)) == ("pairs of K", "rows"), "an address that is not aligned"
    assert ways(a, flat[1 : 1 + 48 * 64].view(64, 48).t()) == ("pairs of K", "K")
    assert ways(flat.as_strided((2, 64, 48), (64 * 48 + 1, 48, 1)), b)[0] == "K", "aligned rows, but matrices that are not"
    assert ways(flat.as_strided((2, 64, 48), (2, 200, 4)), flat.as_strided((48, 64), (200, 2))) == ("K", "rows")


@pytest.fixture(scope="module")
def compiled(pytestconfig):
    asked = EVERY if pytestconfig.getoption("all") else SOME
    found = list(map(json.loads, printed(COMPILE, json.dumps(asked)).splitlines()))
    assert len(found) == sum(tiles for _, _, tiles in asked)
    return found


def test_the_loop_multiplies(compiled):
    """A slice is 16 of K: one DMMA for every 16 x 8 of a warp's sums, whose rows of A and columns of B are read once."""
    for layout, pairs, (m, n), (down, across), _, stack, loop, conflicts in compiled:
        assert stack == 0 and conflicts == [], (layout, m, n)
        assert loop.count("DMMA.16x8x16") == m // down // 16 * n // across // 8, (layout, m, n)
        reads = [opcode for opcode in loop if opcode.startswith("LDS")]
        assert reads == ["LDS.64"] * ((m // down + n // across) // 2), (layout, m, n)
        copied = (m + n) * 16 // (32 * down * across)
        found = loop.count("LDGSTS.E.64"), loop.count("LDGSTS.E.BYPASS.128")
        assert found == ((0, copied // 2) if pairs else (copied, 0)), (layout, m, n)


def test_what_lies_across_k_is_read_before_the_next_slice_is_asked_for(compiled):
    """But not with the sums of larger tiles. An SM has registers for three blocks of 64 x 64 however operands lie."""
    for layout, pairs, tile, _, registers, _, loop, _ in compiled:
        opcodes = [opcode.partition(".")[0] for opcode in loop]
        early = opcodes.index("LDS") < opcodes.index("LDGSTS")
        assert early == (pairs and layout == "cr" and tile == [64, 64]), (layout, pairs, tile)
        assert not pairs or tile != [64, 64] or registers <= 65536 // (3 * 128) // 8 * 8, (layout, registers)
