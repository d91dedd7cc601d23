"""Splits of K in the CUDA design persistent: blocks walk pieces of tiles, and add_parts.cuh adds up their sums. Sums of small
integers are exact, so results must be equal."""

import pytest
import torch

from cuda_reference.launch import config_of
from cuda_reference.matmul.persistent import DESIGN
from tests.covering import alone
from tests.designs.matmul import exact
from tests.designs.matmul.exact import check_order, integers, of_four_parts, with_wgmma
from tests.harness import DEVICES, prepare, random, short, transposed
from tritonkernels.target import Target

SMALL = config_of(BM=64, BN=64, CONSUMERS=1, STAGES=4, GROUP=8, BLOCKS=3)
TILES = {
    "small": SMALL,
    "wide": SMALL | {"BM": 128, "BN": 256, "CONSUMERS": 2},
    "three": SMALL | {"BM": 192, "BN": 192, "CONSUMERS": 3, "STAGES": 3},
    "pair of B": SMALL | {"BM": 128, "BN": 128, "CONSUMERS": 2, "STAGES": 6, "CLUSTER": 2, "BLOCKS": 4},
    "four": SMALL | {"BM": 128, "BN": 128, "CONSUMERS": 2, "STAGES": 6, "CLUSTER": 4, "BLOCKS": 8},
    "pair of A": SMALL | {"BM": 256, "BN": 128, "CONSUMERS": 2, "CLUSTER": 2, "BLOCKS": 4},
}
ON = pytest.mark.parametrize("device", DEVICES)
OF_TILES = pytest.mark.parametrize("tile", TILES)


@ON
@OF_TILES
@short(lambda tile, k, splits: (k, splits) in ((200, 3), (1000, 5)))
@pytest.mark.parametrize("splits", [2, 3, 5])
@pytest.mark.parametrize("k", [0, 8, 64, 200, 328, 1000])
@alone("k", "splits")
def test_splits_add_up_all_of_k(device, tile, k, splits):
    """Also where the last splits have no products; with all that may follow, of a batch."""
    with_wgmma(device)
    for m, n in ((72, 136), (264, 24), (9, 71)):
        a, b, c = (integers(2, *shape, device=device) for shape in ((m, k), (k, n), (m, n)))
        options = {"c": c.float(), "beta": 0.5, "bias": c[0, 0].float(), "activation": "relu", "out_dtype": torch.float32}
        launch, result = exact.computed(DESIGN, TILES[tile] | {"SPLIT_K": splits}, a, b, **options)
        assert launch.name == "add_parts"
        assert torch.equal(result.double(), (a.double() @ b.double() + c.double() / 2 + c[0, 0].double()).relu())


@ON
@pytest.mark.parametrize("splits", [8, 9, 32, 33, 75])
def test_groups_of_threads_share_many_splits(device, splits):
    """Also where the last groups have none."""
    with_wgmma(device)
    k = 64 * splits - 3
    a, b, c = (integers(2, *shape, device=device) for shape in ((9, k), (k, 71), (9, 71)))
    options = {"c": c.float(), "beta": 0.5, "bias": c[0, 0].float(), "activation": "relu", "out_dtype": torch.float32}
    _, result = exact.computed(DESIGN, SMALL | {"SPLIT_K": splits}, a, b, **options)
    assert torch.equal(result.double(), (a.double() @ b.double() + c.double() / 2 + c[0, 0].double()).relu())


@ON
@pytest.mark.parametrize("out_layout", ["row", "col", "odd"])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN"])
def test_tf32_in_every_layout(device, layout, out_layout):
    """The transposed product as well, of which the parts are transposed."""
    with_wgmma(device)
    a, b = (integers(*shape, device=device).float() for shape in ((72, 328), (328, 140)))
    a, b = transposed(a) if layout[0] == "T" else a, transposed(b) if layout[1] == "T" else b
    buffer = torch.full((80, 160), torch.nan, device=device)
    out = {"row": buffer[4:76, 8:148], "col": transposed(buffer)[4:76, 8:148], "odd": buffer[4:76, 9:149]}[out_layout]
    bias = integers(140, device=device).float()
    _, result = exact.computed(DESIGN, SMALL | {"SPLIT_K": 3}, a, b, precision="tf32", out=out, bias=bias)
    assert torch.equal(result.double(), a.double() @ b.double() + bias.double())
    out.fill_(torch.nan)
    assert buffer.isnan().all(), "something outside of out was written"


@ON
@pytest.mark.parametrize("splits, own", [(4, (0, 1, 2, 3)), (33, (0, 12, 20, 32)), (33, (3, 4, 5, 8))])
def test_splits_are_added_in_the_order_of_k(device, splits, own):
    """In groups of threads and of these; 33 splits are 11 groups of three."""
    with_wgmma(device)
    a, b = of_four_parts(64, splits, own, device=device)
    a, b = a.repeat(70, 1), b.repeat(40, 1).t()
    _, result = exact.computed(DESIGN, SMALL | {"SPLIT_K": splits}, a, b, out_dtype=torch.float32)
    assert result.unique().tolist() == [2.0]


@ON
def test_fp8_without_scales(device):
    with_wgmma(device)
    a, b = random(72, 1300, device=device).mul(3).round(), transposed(random(1300, 136, device=device).mul(3).round())
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    _, result = exact.computed(DESIGN, SMALL | {"SPLIT_K": 3}, a, b, out_dtype=torch.float32)
    assert torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("order", ["1", "2"])
def test_any_order(monkeypatch, order):
    check_order(monkeypatch, order, "persistent", {"BM": 256, "SPLIT_K": 3})


def test_configs_of_few_tiles_have_splits():
    target = Target.named("h200")

    def splits_of(m, n, k, config=(128, 128), **options):
        a, b = (torch.empty(*shape, dtype=torch.float16, device="meta") for shape in ((m, k), (k, n)))
        problem = prepare("matmul", a, b, **options).problem
        return [
            c["SPLIT_K"]
            for c in DESIGN.configs(problem, target)
            if (c["BM"], c["BN"]) == config and c["CONSUMERS"] == 2 and "CLUSTER" not in c
        ]

    assert splits_of(768, 768, 8960) == [1, 3, 7, 11]
    assert splits_of(4096, 4096, 8960) == splits_of(768, 768, 8960, accumulate="fp16") == [1]


def test_the_model_counts_the_pieces_and_their_addition():
    target = Target.named("h200")
    a, b = (torch.empty(*shape, dtype=torch.float16, device="meta") for shape in ((768, 8960), (8960, 768)))
    problem = prepare("matmul", a, b).problem
    config = next(c for c in DESIGN.configs(problem, target) if c["BM"] == c["BN"] == 128 and c["SPLIT_K"] == 3)
    kernel, addition = DESIGN.work(problem, config, target)
    assert kernel.blocks == 108 and kernel.flops == 2 * 128 * 128 * 64 * 47 and addition.blocks == 768 * 768 // 1024
