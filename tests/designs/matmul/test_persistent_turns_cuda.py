"""Consumers of the CUDA design persistent that multiply in turn, each a tile of its own (turns.cuh). Sums of small integers are
exact, so results must be equal."""

import pytest
import torch

from cuda_reference.launch import config_of
from cuda_reference.matmul.persistent import DESIGN
from tests.designs.matmul import exact
from tests.designs.matmul.exact import check_order, integers, with_wgmma
from tests.harness import DEVICES, prepare, short, transposed
from tritonkernels.target import Target

SMALL = config_of(BM=64, BN=64, CONSUMERS=2, STAGES=3, GROUP=8, BLOCKS=2, SPLIT_K=1, IN_TURN=True)
TILES = {
    "64 x 64": SMALL,
    "64 x 256": SMALL | {"BN": 256},
    "64 x 320": SMALL | {"BN": 320},
    "128 x 160": SMALL | {"BM": 128, "BN": 160},
    "96 x 64": SMALL | {"BM": 96, "SWAPPED": True},
    "three consumers": SMALL | {"CONSUMERS": 3},
    "pair of A": SMALL | {"BM": 128, "BN": 64, "CLUSTER": 2, "BLOCKS": 4},
    "pair of B": SMALL | {"BM": 64, "BN": 128, "CLUSTER": 2, "BLOCKS": 4},
    "four": SMALL | {"CLUSTER": 4, "SHARE_A": 2, "BLOCKS": 4},
}
ON = pytest.mark.parametrize("device", DEVICES)
OF_TILES = pytest.mark.parametrize("tile", TILES)
SOME = "64 x 64", "64 x 320", "128 x 160", "96 x 64", "three consumers", "four"


def computed(tile, *operands, **options):
    launch, result = exact.computed(DESIGN, TILES[tile], *operands, **options)
    assert launch.name == "persistent"
    return result


@ON
@OF_TILES
@short(lambda tile, sizes: tile in SOME)
@pytest.mark.parametrize("sizes", [(8, 8, 0), (8, 8, 64), (200, 264, 64), (264, 72, 840), (72, 520, 1544)], ids=str)
def test_any_number_of_tiles_and_slices(device, sizes, tile):
    """None, fewer than stages, and several rounds of them; a consumer without a tile, and one that has one more."""
    with_wgmma(device)
    m, n, k = sizes
    a, b = integers(3, m, k, device=device), integers(3, k, n, device=device)
    assert torch.equal(computed(tile, a, b, out_dtype=torch.float32).double(), a.double() @ b.double())


@ON
@OF_TILES
@short(lambda tile: tile in SOME)
@pytest.mark.parametrize("first", [16, 5], ids=["in boxes", "by elements"])
def test_all_that_may_follow(device, first, tile):
    """Each consumer has boxes and a bias of its own; nothing outside of the result is written."""
    with_wgmma(device)
    a, b, c, bias = (integers(*shape, device=device) for shape in ((2, 200, 328), (328, 264), (2, 200, 264), (264,)))
    buffer = torch.full((2, 204, 288), torch.nan, device=device, dtype=torch.float16)
    out = buffer[:, 2:202, first : first + 264]
    options = {"c": c, "beta": -0.5, "bias": bias, "activation": "relu", "alpha": 1.5}
    exact.computed(DESIGN, TILES[tile], a, transposed(b), out=out, **options)
    expected = (1.5 * (a.double() @ b.double()) - 0.5 * c.double() + bias.double()).relu()
    assert torch.equal(out.double(), expected.half().double())
    out.fill_(torch.nan)
    assert buffer.isnan().all(), "something outside of out was written"


def of_whole_rows(problem):
    return [
        c for c in DESIGN.configs(problem, Target.named("h200")) if c.get("IN_TURN") and c["BM"] == 64 and c["BN"] >= problem.n
    ]


@ON
@pytest.mark.parametrize("layout", ["row", "col"])
@pytest.mark.parametrize("columns", [136, 200, 264, 320])
def test_tiles_of_all_columns(device, columns, layout):
    """The last box and the last wgmma have some that are no multiple of their own."""
    with_wgmma(device)
    a, b, bias = integers(712, 104, device=device), integers(104, columns, device=device), integers(columns, device=device)
    b, options = transposed(b) if layout == "col" else b, {"bias": bias, "activation": "relu"}
    many = torch.empty(2**17, 104, dtype=torch.float16, device="meta")
    config = of_whole_rows(prepare("matmul", many, b.to("meta")).problem)[-1] | {"BLOCKS": 3}
    buffer = torch.full((712, columns + 16), torch.nan, device=device, dtype=torch.float16)
    exact.computed(DESIGN, config, a, b, out=buffer[:, 8:-8], **options)
    assert torch.equal(buffer[:, 8:-8].double(), (a.double() @ b.double() + bias.double()).relu())
    assert buffer[:, :8].isnan().all() and buffer[:, -8:].isnan().all(), "something outside of out was written"


@pytest.mark.parametrize("columns, layout, spans", [
    (128, "col", []), (136, "col", [136]), (136, "row", [192]), (264, "col", [272]), (264, "row", [320]), (328, "col", []),
])  # fmt: skip
def test_where_a_tile_has_all_columns(columns, layout, spans):
    a, b, c = (
        torch.empty(*shape, dtype=torch.float16, device="meta") for shape in ((2**17, 104), (104, columns), (2**17, columns))
    )
    b = transposed(b) if layout == "col" else b
    of_any = {128, 256}
    assert {config["BN"] for config in of_whole_rows(prepare("matmul", a, b).problem)} - of_any == set(spans)
    with_c = of_whole_rows(prepare("matmul", a, b, c=c, beta=1.0).problem)
    assert {config["BN"] for config in with_c} <= of_any, "edges of boxes overlap, where C may be the result"


@ON
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8, torch.float8_e4m3fn, torch.float32], ids=str)
def test_every_type(device, dtype):
    with_wgmma(device)
    a, b = integers(200, 400, device=device).to(dtype), transposed(integers(400, 144, device=device).to(dtype))
    options = {
        torch.float32: {"precision": "tf32"},
        torch.float8_e4m3fn: {"accumulate": "fast", "out_dtype": torch.float32},
        torch.bfloat16: {"out_dtype": torch.float32},
    }.get(dtype, {})
    assert torch.equal(computed("64 x 64", a, b, **options).double(), a.double() @ b.double())


@ON
@pytest.mark.parametrize("tile", ["64 x 64", "pair of B"])
def test_pieces_of_tiles(device, tile):
    with_wgmma(device)
    a, b = integers(2, 136, 1000, device=device), integers(2, 1000, 200, device=device)
    launch, result = exact.computed(DESIGN, TILES[tile] | {"SPLIT_K": 3}, a, b, out_dtype=torch.float32)
    assert launch.name == "add_parts"
    assert torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("order", ["1", "2", "3"])
def test_any_order(monkeypatch, order):
    check_order(monkeypatch, order, "persistent", {"BM": 64, "BN": 128, "CLUSTER": 1, "IN_TURN": True})


def test_where_blocks_have_more_than_a_tile():
    target = Target.named("h200")

    def tiles_of(m, n, k, dtype=torch.float16, **options):
        a, b = (torch.empty(*shape, dtype=dtype, device="meta") for shape in ((m, k), (n, k)))
        problem = prepare("matmul", a, b.mT, **options).problem
        return {(c["BM"], c["BN"], c["CLUSTER"]) for c in DESIGN.configs(problem, target) if c.get("IN_TURN")}

    assert tiles_of(128, 1024, 512) == set()
    assert (128, 192, 1) in tiles_of(5120, 5120, 768)
    assert (64, 256, 2) in tiles_of(5120, 5120, 768, activation="gelu")
    assert (128, 192, 1) in tiles_of(5120, 5120, 768, activation="gelu")
    assert (128, 192, 1) not in tiles_of(5120, 5120, 768, activation="gelu", out_dtype=torch.float32)
    assert tiles_of(5120, 5120, 768, torch.float8_e4m3fn, out_dtype=torch.float32) == set()


@pytest.mark.parametrize("k, options, hidden", [(4096, {}, 1.0), (64, {"activation": "silu"}, 0.31)])
def test_the_model_hides_results_behind_the_products_of_the_next_tile(k, options, hidden):
    """All but the last; of few products what they take, which does not depend on what follows."""
    a, b = (torch.empty(4096, k, dtype=torch.float16, device="meta") for _ in range(2))
    problem, target = prepare("matmul", a, b.mT, **options).problem, Target.named("h200")
    config = config_of(BM=128, BN=128, CONSUMERS=2, STAGES=6, GROUP=8, BLOCKS=132, SPLIT_K=1)
    (together,), (in_turn,) = (DESIGN.work(problem, config | {"IN_TURN": turn}, target) for turn in (False, True))
    assert (together.epilogue - in_turn.epilogue) / together.epilogue == pytest.approx(7 / 8 * hidden, abs=0.02)
    assert together.fetched == in_turn.fetched
