"""cuda_cores and dmma of Triton, which share matmul/parts/gluon_product.py. Where there is no GPU: their loops in an emulation,
and which tiles and splits there are. On a GPU every tile in every layout, with and without splits: sums of small integers,
which are exact."""

import numpy
import pytest
import torch

from tests import gluon_threads
from tests.designs.matmul.exact import computed, of_four_parts
from tests.harness import available_on, offset_by_one, padded, prepare, short, small_integers, transposed
from tritonkernels.config import config_of
from tritonkernels.language.gluon_tile import Operand, Staging
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul import cuda_cores, dmma
from tritonkernels.matmul.parts.gluon_product import Words
from tritonkernels.matmul.split_k import ROOMY
from tritonkernels.target import Target

H100 = Target.named("h100")
DTYPES = {cuda_cores: torch.float32, dmma: torch.float64}


def name(value):
    return value.__name__.rpartition(".")[2] if value in DTYPES else None


OF_DESIGNS = pytest.mark.parametrize("module", DTYPES, ids=name)


def problem(module, m, n, k, *batch):
    operands = (torch.empty(*batch, *shape, dtype=DTYPES[module], device="meta") for shape in ((m, k), (k, n)))
    return prepare("matmul", *operands).problem


# What dmma's mma is to numpy
MMA = {
    "zero_sums": lambda m, n: numpy.zeros((m, n)),
    "fragments": lambda a, b, m, n: (a.load(None).T, None, b.load(None)),
    "multiply_add": lambda sums, upper, lower, b: sums + upper @ b,
    "joined": lambda sums, m, n: sums,
}


@pytest.mark.parametrize("module, word", [(cuda_cores, 1), (cuda_cores, 4), (dmma, 1), (dmma, 2)], ids=name)
@pytest.mark.parametrize("length", (0, 1, 31, 32, 33, 64, 65, 130, 200))
@pytest.mark.parametrize("stages", (2, 3, 4))
def test_each_slice_is_multiplied_once_it_has_arrived(stages, length, module, word):
    """In an emulation whose copies land as late as they may: no CPU runs the kernel. Rows beyond A and B come once more."""
    a, b = (small_integers(*shape, dtype=DTYPES[module]) for shape in ((20, 256), (256, 12)))
    a[:, length:], b[length:] = torch.nan, torch.nan
    how, words = Staging(stages, None, None, None, None, None), Words(word, word)
    operands = Operand(a, 1, 256, 20), Operand(b, 12, 1, 12)
    arguments = *operands, 0, 0, length, how, words, 32, 16, 32, True
    acc = gluon_threads.call(module._tile_product, *arguments, fakes=MMA if module is dmma else None)
    assert torch.equal(torch.from_numpy(acc)[:20, :12], a[:, :length] @ b[:length])


@OF_DESIGNS
def test_tiles_cover_few_rows_and_columns_without_waste(module):
    def tiles(m, n):
        return {(c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) for c in module.DESIGN.configs(problem(module, m, n, 64), H100)}

    every = {tile[:2] for tile in module.TILES}
    thin = {tile for tile in every if min(tile) < 32}
    assert tiles(4096, 4096) == every - thin and not (tiles(4096, 17) | tiles(17, 4096)) & thin
    assert tiles(24, 64) == every & {(32, 32), (32, 64)}
    assert tiles(1, 300) == every & {(32, 32), (32, 64), (32, 128), (16, 128), (8, 128)}
    assert tiles(4096, 16) & thin == every & {(128, 16)} and tiles(8, 4096) & thin == every & {(8, 128), (16, 128)}
    assert tiles(48, 33) == {(32, 32), (32, 64), (64, 32), (64, 64)}


@OF_DESIGNS
def test_splits_are_for_few_tiles_and_a_long_k(module):
    def splits(*shape):
        found = list(module.DESIGN.configs(problem(module, *shape), H100))
        assert found[0].kwargs["SPLIT_K"] == 1
        return {c.kwargs["SPLIT_K"] for c in found if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) == (32, 32)}

    assert splits(4096, 4096, 4096) == {1}
    assert {1, 2, 4, 8, 16, 24, 32} <= splits(256, 40, 2**15) and max(splits(32, 32, 2**15)) == 128
    assert max(splits(128, 128, 2**14, 8)) == 4, "of 8 x 16 tiles for 4 blocks on each of 132 SMs"


def with_tile(tile, splits, stages):
    m, n, block_k, num_warps, own = tile
    numbers = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": block_k, "GROUP_M": 8, "SPLIT_K": splits}
    return config_of(numbers, num_warps, stages or own, ROOMY)


TILES = [(module, tile) for module in DTYPES for tile in module.TILES]
LAYOUTS = ("NN", "NT", "TN", "TT")
OF_TILES = pytest.mark.parametrize("module, tile", TILES, ids=lambda x: "x".join(map(str, x)) if type(x) is tuple else None)


@pytest.mark.gpu
@short(lambda module, tile, splits, layout: layout == LAYOUTS[(TILES.index((module, tile)) + splits) % 4])
@OF_TILES
@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_tile_in_every_layout(module, tile, splits, layout):
    """In a batch whose sizes end within tiles, slices and words of 16 bytes or not, with NaN between the rows."""
    available_on(LIBRARY, "cuda")
    for m, n, k, around in (
        (132, 260, 164, padded),
        (131, 71, 333, padded),
        (131, 71, 333, offset_by_one),
        (3, 5, 2, torch.clone),
    ):
        shapes = (m, k), (k, n), (m, n)
        a, b, c = (small_integers(2, *shape, dtype=DTYPES[module], device="cuda") for shape in shapes)
        expected = (a.double() @ b.double() + c.double() / 2 + c[0, 0].double()).relu()
        a, b = around(a.mT).mT if layout[0] == "T" else around(a), around(b.mT).mT if layout[1] == "T" else around(b)
        options = {"c": c, "beta": 0.5, "bias": c[0, 0], "activation": "relu"}
        _, result = computed(module.DESIGN, with_tile(tile, splits, None), a, b, **options)
        assert torch.equal(result.double(), expected), (m, n, k)


@pytest.mark.gpu
@short(lambda module, tile: tile == module.TILES[0])
@OF_TILES
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_any_number_of_slices(module, tile, stages):
    """Fewer than stages, as many, and more; of which the last may be shorter; in splits of which some have none."""
    available_on(LIBRARY, "cuda")
    for slices in range(stages + 3):
        for more in (0, 1, 13):
            k = slices * tile[2] + more
            a, b = (small_integers(*shape, dtype=DTYPES[module], device="cuda") for shape in ((70, k), (k, 40)))
            for splits in (1, 4):
                _, result = computed(module.DESIGN, with_tile(tile, splits, stages), a, transposed(b))
                assert torch.equal(result.double(), a.double() @ b.double()), (k, splits)


@pytest.mark.gpu
@OF_TILES
@pytest.mark.parametrize("parts", [4, 28])
def test_splits_are_added_in_the_order_of_k(module, tile, parts):
    """By the last program to arrive, or by a second kernel. The next call finds the counters at zero."""
    available_on(LIBRARY, "cuda")
    root = 2.0**13 if module is cuda_cores else 2.0**27
    a, b = of_four_parts(tile[2], parts, device="cuda", root=root, dtype=DTYPES[module])
    for _ in range(2):
        _, result = computed(module.DESIGN, with_tile(tile, parts, None), a.repeat(130, 1), b.repeat(40, 1).t())
        assert result.unique().tolist() == [2.0]
