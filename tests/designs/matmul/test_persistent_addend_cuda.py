"""C of the CUDA design persistent, which TMA brings into stages after a tile's slices (addend.cuh). Sums of small integers are
exact, so results must be equal."""

import pytest
import torch

from cuda_reference.launch import config_of
from cuda_reference.matmul.persistent import DESIGN
from tests.designs.matmul import exact
from tests.designs.matmul.exact import integers, with_wgmma
from tests.harness import DEVICES, prepare, short, transposed

SMALL = config_of(BM=64, BN=64, CONSUMERS=1, STAGES=4, GROUP=8, BLOCKS=3, SPLIT_K=1)
OF_TWO, OF_THREE = SMALL | {"BM": 128, "CONSUMERS": 2}, SMALL | {"BM": 192, "CONSUMERS": 3, "BN": 128}
IN_TURN = SMALL | {"CONSUMERS": 2, "BLOCKS": 2, "IN_TURN": True}
TILES = {
    "64 x 64": SMALL,
    "64 x 64 by two stages": SMALL | {"STAGES": 2},
    "128 x 256": OF_TWO | {"BN": 256},
    "128 x 160": OF_TWO | {"BN": 160},  # whose last box has some columns of the one before
    "256 x 128": OF_TWO | {"BM": 256, "BN": 128},
    "192 x 128 by three": OF_THREE,  # whose second stage has a box of the last consumer only
    "192 x 192 by three": OF_THREE | {"BN": 192},
    "pair of A": OF_TWO | {"BN": 64, "CLUSTER": 2, "BLOCKS": 4},
    "pair of B": OF_TWO | {"BN": 128, "CLUSTER": 2, "BLOCKS": 4},
    "four": OF_TWO | {"BN": 128, "CLUSTER": 4, "BLOCKS": 4},
    "64 x 64 in turn": IN_TURN,
    "64 x 320 in turn": IN_TURN | {"BN": 320},
    "128 x 128 in turn, four": IN_TURN | {"BM": 128, "BN": 128, "CLUSTER": 4, "BLOCKS": 4},
    "three in turn": IN_TURN | {"CONSUMERS": 3},
}
ON = pytest.mark.parametrize("device", DEVICES)
OF_TILES = pytest.mark.parametrize("tile", TILES)
FEW = ("64 x 64", "192 x 128 by three", "four", "64 x 64 in turn")
BY_TMA, BY_LOADS = True, False


def computed(config, a, b, **options):
    """(whether TMA brings C, the result)"""
    launch, result = exact.computed(DESIGN, config, a, b, **options)
    c = launch.arguments[3]
    return c is None, result


@ON
@OF_TILES
@pytest.mark.parametrize("out_dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("k", [0, 64, 840])
@short(
    lambda tile, k, out_dtype: (
        (k < 840 or tile in FEW) and (out_dtype == torch.float16 or tile in ("128 x 256", "64 x 64 in turn"))
    )
)
def test_each_number_is_added_in_its_place(device, tile, k, out_dtype):
    """After no slice, one, and several rounds of the ring; in tiles partly and wholly outside."""
    with_wgmma(device)
    a, b, c, bias = (integers(*shape, device=device) for shape in ((2, 264, k), (2, k, 344), (2, 264, 344), (344,)))
    c, bias = (t.to(out_dtype) for t in (c, bias))
    expected = 1.5 * (a.double() @ b.double()) - 0.5 * c.double()
    by_tma, result = computed(TILES[tile], a, transposed(b), c=c, beta=-0.5, alpha=1.5, out_dtype=out_dtype)
    assert by_tma and torch.equal(result.double(), expected.to(out_dtype).double())
    _, result = computed(
        TILES[tile], a, transposed(b), c=c, beta=-0.5, alpha=1.5, bias=bias, activation="relu", out_dtype=out_dtype
    )
    assert torch.equal(result.double(), (expected + bias.double()).relu().to(out_dtype).double())


OVERLAPPING = [name for name, tile in TILES.items() if tile["BN"] % 64]  # boxes of 16-bit results


@ON
@OF_TILES
@pytest.mark.parametrize("order", ["0", "1", "2"])
@short(lambda tile: tile in (*OVERLAPPING, "64 x 64 in turn"))
def test_the_result_may_be_c(device, tile, order, monkeypatch):
    """In any order of copies: no box is written before the next one has landed, which may have some of its columns."""
    with_wgmma(device)
    monkeypatch.setenv("SIMT_ORDER", order)
    a, b, c = (integers(*shape, device=device) for shape in ((2, 264, 40), (2, 40, 344), (2, 264, 344)))
    expected = 1.5 * (a.double() @ b.double()) - 0.5 * c.double()
    launch, result = exact.over_c(DESIGN, TILES[tile], a, transposed(b), c, alpha=1.5, beta=-0.5)
    assert launch.arguments[3] is None and torch.equal(result.double(), expected.half().double())


@ON
@OF_TILES
@short(lambda tile: tile in ("128 x 160", "192 x 192 by three", "64 x 64 in turn"))
def test_an_exponential_after_it(device, tile):
    """Whose code is another one (boxed_result.cuh)."""
    with_wgmma(device)
    a, b, c = (integers(*shape, device=device) for shape in ((1, 264, 72), (1, 72, 344), (1, 264, 344)))
    by_tma, result = computed(TILES[tile], a, b, c=c, alpha=1 / 64, beta=0.5, activation="gelu")
    expected = torch.nn.functional.gelu((a.double() @ b.double()) / 64 + c.double() / 2)
    assert by_tma and torch.allclose(result.double(), expected, rtol=2**-11, atol=2**-18)  # fp16's rounding, erf's in fp32


def inside(t):
    """With other numbers around it, which TMA must not read for its own."""
    around = torch.full((t.shape[0] + 1, t.shape[1] + 3, t.shape[2] + 24), torch.nan, dtype=t.dtype, device=t.device)
    around[:-1, 1:-2, 8:-16] = t
    return around[:-1, 1:-2, 8:-16]


ADDENDS = {  # (C of a product as it is, who brings it)
    "as it is": (torch.clone, BY_TMA),
    "inside": (inside, BY_TMA),
    "of all matrices": (lambda c: c[:1].expand_as(c), BY_TMA),
    "transposed": (transposed, BY_LOADS),
    "of all rows": (lambda c: c[:, :1].expand_as(c), BY_LOADS),
    "of all columns": (lambda c: c[:, :, :1].expand_as(c), BY_LOADS),
    "off by one": (lambda c: torch.cat([c[..., :1], c], -1)[..., 1:], BY_LOADS),
}


@ON
@pytest.mark.parametrize("addend", ADDENDS)
def test_any_addend(device, addend):
    with_wgmma(device)
    a, b, c = (integers(*shape, device=device) for shape in ((3, 72, 136), (3, 136, 200), (3, 72, 200)))
    arrange, wanted = ADDENDS[addend]
    c = arrange(c)
    by_tma, result = computed(OF_TWO | {"BN": 128}, a, b, c=c, beta=2)
    assert by_tma is wanted
    assert torch.equal(result.double(), (a.double() @ b.double() + 2 * c.double()).half().double())


@ON
@pytest.mark.parametrize("first", [16, 5], ids=["whole chunks", "others"])
def test_out_inside_of_another_tensor(device, first):
    """What TMA cannot write is not read by it either; nothing around it is written."""
    with_wgmma(device)
    a, b, c = (integers(*shape, device=device) for shape in ((1, 200, 64), (1, 64, 136), (1, 200, 136)))
    buffer = torch.full((1, 204, 168), torch.nan, device=device, dtype=torch.float16)
    out = buffer[:, 2:202, first : first + 136]
    by_tma, _ = computed(OF_TWO, a, b, c=c, beta=1, out=out)
    assert by_tma is (first == 16)
    assert torch.equal(out.double(), (a.double() @ b.double() + c.double()).half().double())
    out.fill_(torch.nan)
    assert buffer.isnan().all(), "something outside of out was written"


@ON
@pytest.mark.parametrize(
    "dtype, options", [(torch.bfloat16, {}), (torch.float32, {"precision": "tf32"}), (torch.int8, {})], ids=str
)
def test_types(device, dtype, options):
    with_wgmma(device)
    a, b = (integers(*shape, device=device).to(dtype) for shape in ((136, 128), (200, 128)))
    kind = prepare("matmul", a, b.mT, **options).problem.out_dtype
    c = integers(136, 200, device=device).to(kind)
    by_tma, result = computed(OF_TWO, a, b.mT, c=c, beta=2, **options)
    assert by_tma and torch.equal(result.double(), (a.double() @ b.mT.double() + 2 * c.double()).to(kind).double())


@pytest.mark.parametrize("order", ["1", "2", "3"])
@pytest.mark.parametrize("tile", TILES)
@short(lambda tile, order: order == "2" and tile in (*FEW, "three in turn"))
def test_any_order_of_threads(monkeypatch, order, tile):
    """About half of the copies land at once, and others when they are waited for."""
    monkeypatch.setenv("SIMT_ORDER", order)
    a, b, c = (integers(*shape) for shape in ((2, 264, 328), (2, 328, 344), (2, 264, 344)))
    by_tma, result = computed(TILES[tile], a, b, c=c, beta=2, activation="relu")
    assert by_tma and torch.equal(result.double(), (a.double() @ b.double() + 2 * c.double()).relu().half().double())
