"""The Triton design cuda_cores. Where there is no GPU: how operands come, which tiles and splits there are, the machine code.
On a GPU every tile in every layout, with and without splits: sums of small integers, which are exact."""

import json

import pytest
import torch

from tests.compiler import printed
from tests.designs.matmul.exact import computed, of_four_parts
from tests.harness import available_on, offset_by_one, padded, prepare, short, small_integers, transposed
from tritonkernels.config import config_of
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul.cuda_cores import BLOCK_K, DESIGN, TILES
from tritonkernels.matmul.split_k import ROOMY
from tritonkernels.target import Target

H100 = Target.named("h100")
COPY, QUAD = "LDGSTS.E", "LDGSTS.E.BYPASS.128"
FIRST = config_of({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": BLOCK_K, "GROUP_M": 8, "SPLIT_K": 1}, 8, 3)


def problem(m, n, k, *batch):
    return prepare("matmul", *(torch.empty(*batch, *shape, device="meta") for shape in ((m, k), (k, n)))).problem


def ways(a, b):
    """How slices of A and of B come: "quads of rows", "quads of K", "K" or "rows"."""
    call = prepare("matmul", a, b)
    (launch,) = DESIGN.launches(call.problem, FIRST, *call.parts[0])
    staging, quads = launch.values["staging"], launch.values["quads"]

    def way(load, in_quads):
        if in_quads.value:
            return "quads of rows"
        along = "K" if load.value.order[0] == 0 else "rows"
        return f"quads of {along}" if max(load.value.size_per_thread) == 4 else along

    return way(staging.LOAD_A, quads.A), way(staging.LOAD_B, quads.B)


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


def test_tiles_cover_few_rows_and_columns_without_waste():
    def tiles(m, n):
        return {(c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) for c in DESIGN.configs(problem(m, n, 64), H100)}

    assert tiles(4096, 4096) == {tile[:2] for tile in TILES}
    assert tiles(24, 64) == {(32, 32), (32, 64)} and tiles(1, 300) == {(32, 32), (32, 64), (32, 128)}
    assert tiles(48, 33) == {(32, 32), (32, 64), (64, 32), (64, 64)}


def test_splits_are_for_few_tiles_and_a_long_k():
    def splits(*shape):
        found = list(DESIGN.configs(problem(*shape), H100))
        assert found[0].kwargs["SPLIT_K"] == 1
        return {c.kwargs["SPLIT_K"] for c in found if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) == (32, 32)}

    assert splits(4096, 4096, 4096) == {1}
    assert {1, 2, 4, 8, 16, 24, 32} == splits(256, 40, 2**15) and max(splits(32, 32, 2**15)) == 128
    assert max(splits(128, 128, 2**14, 8)) == 4, "of 8 x 16 tiles for 4 blocks on each of 132 SMs"


@pytest.mark.parametrize("m, n, k", [(128, 580, 133808), (24, 64, 336896)])
def test_few_tiles_are_split_by_the_model(m, n, k):
    _, config = LIBRARY.choose(problem(m, n, k), H100, "cuda_cores")
    assert config.kwargs["SPLIT_K"] >= 16


# Prints [layout, sizes, stack, opcodes of the loop, accesses with bank conflicts] of the largest tile.
COMPILE = """
import json, torch
from perf.offline import compile_launch, sass
from tests.designs.gluon.compiled import conflicts
from tritonkernels.config import config_of
from tritonkernels.matmul import cuda_cores, prepare
from tritonkernels.target import Target

target = Target.named("h200")
for layout in ("rr", "rc", "cr", "cc"):
    for sizes in ((4096, 4096, 4096), (4095, 4097, 4093)):
        m, n, k = sizes
        a = torch.empty(m, k, device="meta") if layout[0] == "r" else torch.empty(k, m, device="meta").t()
        b = torch.empty(k, n, device="meta") if layout[1] == "r" else torch.empty(n, k, device="meta").t()
        call = prepare(a, b)
        config = next(iter(cuda_cores.DESIGN.configs(call.problem, target)))
        (launch,) = cuda_cores.DESIGN.launches(call.problem, config, *call.parts[0])
        (code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
        loop = [text.split()[0] for _, text in code.hot_instructions() if text != "LDS RZ, [RZ]"]  # which ptxas puts in
        found = conflicts(launch.values["staging"]._asdict(), config)
        print(json.dumps([layout, sizes, code.stack_bytes, loop, found]))
"""


@pytest.fixture(scope="module")
def compiled():
    """{(layout, whether quads are aligned): (stack, opcodes of the loop, bank conflicts)}"""
    rows = map(json.loads, printed(COMPILE).splitlines())
    return {(layout, sizes[0] % 4 == 0): facts for layout, sizes, *facts in rows}


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("layout", ["rr", "rc", "cr", "cc"])
def test_the_loop_multiplies(compiled, layout, aligned):
    """A slice is 32 of K, for each of which a thread's 8 x 8 sums take 4 quads. A thread copies 8 quads, or 32 floats."""
    stack, loop, conflicts = compiled[layout, aligned]
    assert stack == 0 and conflicts == []
    assert loop.count("FFMA") == 32 * 64 and loop.count("FFMA") / len(loop) >= (0.91 if aligned else 0.88)
    assert [opcode for opcode in loop if opcode.startswith("LDS")] == ["LDS.128"] * 32 * 4
    assert (loop.count(QUAD), loop.count(COPY)) == ((8, 0) if aligned else (0, 32))


def with_tile(tile, splits, stages):
    m, n, num_warps, own = tile
    numbers = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": BLOCK_K, "GROUP_M": 8, "SPLIT_K": splits}
    return config_of(numbers, num_warps, stages or own, ROOMY)


OF_TILES = pytest.mark.parametrize("tile", TILES, ids=lambda tile: "x".join(map(str, tile[:3])))


@pytest.mark.gpu
@OF_TILES
@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_every_tile_in_every_layout(tile, splits, layout):
    """Of a batch whose sizes end within tiles and slices, in quads and not, with NaN between the rows."""
    available_on(LIBRARY, "cuda")
    for m, n, k, around in (
        (132, 260, 164, padded),
        (131, 71, 333, padded),
        (131, 71, 333, offset_by_one),
        (3, 5, 2, torch.clone),
    ):
        a, b, c = (small_integers(2, *shape, device="cuda") for shape in ((m, k), (k, n), (m, n)))
        expected = (a.double() @ b.double() + c.double() / 2 + c[0, 0].double()).relu()
        a, b = around(a.mT).mT if layout[0] == "T" else around(a), around(b.mT).mT if layout[1] == "T" else around(b)
        options = {"c": c, "beta": 0.5, "bias": c[0, 0], "activation": "relu"}
        _, result = computed(DESIGN, with_tile(tile, splits, None), a, b, **options)
        assert torch.equal(result.double(), expected), (m, n, k)


@pytest.mark.gpu
@short(lambda tile: tile == TILES[0])
@OF_TILES
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_any_number_of_slices(tile, stages):
    """Fewer than stages, as many, and more; of which the last may be shorter; in splits of which some have none."""
    available_on(LIBRARY, "cuda")
    for slices in range(stages + 3):
        for more in (0, 1, 17):
            k = slices * BLOCK_K + more
            a, b = small_integers(70, k, device="cuda"), transposed(small_integers(k, 40, device="cuda"))
            for splits in (1, 4):
                _, result = computed(DESIGN, with_tile(tile, splits, stages), a, b)
                assert torch.equal(result.double(), a.double() @ b.double()), (k, splits)


@pytest.mark.gpu
@OF_TILES
@pytest.mark.parametrize("parts", [4, 28])
def test_splits_are_added_in_the_order_of_k(tile, parts):
    """By the last program to arrive, or by a second kernel. The next call finds the counters at zero."""
    available_on(LIBRARY, "cuda")
    a, b = (part.float() for part in of_four_parts(BLOCK_K, parts, device="cuda"))
    for _ in range(2):
        _, result = computed(DESIGN, with_tile(tile, parts, None), a.repeat(130, 1), b.repeat(40, 1).t())
        assert result.unique().tolist() == [2.0]
