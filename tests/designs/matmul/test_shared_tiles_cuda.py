"""Tiles that blocks share to the slice (shared_tiles.cuh), by the CUDA design wgmma_planes: which and by whom, and the order in
which parts are added. Sums of small integers are exact, so results must be equal."""

import pytest
import torch

from cuda_reference.launch import config_of
from cuda_reference.matmul.wgmma_planes import DESIGN, cut
from tests.designs.matmul import exact
from tests.designs.matmul.exact import of_four_parts, with_wgmma
from tests.harness import DEVICES, prepare, short, small_integers
from tritonkernels.target import Target

BLOCKS, DEPTH = 3, 32  # numbers of a slice
SMALL = config_of(BM=64, BN=64, STAGES=3, GROUP=8, BLOCKS=BLOCKS, WAVES=1, PARTS=8)
WIDE, HIGH = SMALL | {"BN": 128, "STAGES": 5}, SMALL | {"BM": 192, "STAGES": 5}  # HIGH: of three consumers
on_devices = pytest.mark.parametrize("device", DEVICES)


def computed(config, a, b, **options):
    return exact.computed(DESIGN, config, a, b, precision="tf32x3", **options)


@short(lambda device, tiles, k, waves: k > 0 or tiles in (1, 4))
@pytest.mark.parametrize("waves", (1, 2))
@pytest.mark.parametrize("k", (0, 32, 100, 400))
@pytest.mark.parametrize("tiles", (1, 2, BLOCKS, BLOCKS + 1, 2 * BLOCKS - 1, 2 * BLOCKS + 1))
@on_devices
def test_at_the_edges_of_waves(device, tiles, k, waves):
    """With 0, 1, 4 and 13 slices. All of the epilogue follows, once."""
    with_wgmma(device)
    a, b, c = (small_integers(*shape, device=device) for shape in ((9, k), (k, 64 * tiles - 3), (9, 64 * tiles - 3)))
    _, result = computed(SMALL | {"WAVES": waves}, a, b, c=c, beta=0.5, activation="relu")
    assert torch.equal(result.double(), (a.double() @ b.double() + c.double() / 2).relu())


@short(lambda device, rows, config: rows in (1, 17, 64) or config is HIGH)
@pytest.mark.parametrize("rows", (1, 16, 17, 48, 64))
@pytest.mark.parametrize("config", (SMALL, WIDE, HIGH), ids=("small", "wide", "high"))
@on_devices
def test_parts_of_few_rows(device, rows, config):
    """Warps without a row in the result exchange nothing, and those with one all of theirs."""
    with_wgmma(device)
    rows += (config is HIGH) * 64
    a, b = small_integers(rows, 450, device=device), small_integers(450, 200, device=device)
    launch, result = computed(config, a, b)
    assert launch.arguments[-1] == BLOCKS, "all share"
    assert torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("waves", (1, 2))
@pytest.mark.parametrize("batch, n", [(4, 45), (5, 129)])
@on_devices
def test_a_run_goes_from_one_matrix_of_a_batch_to_the_next(device, batch, n, waves):
    with_wgmma(device)
    a, b = small_integers(batch, 70, 260, device=device), small_integers(batch, 260, n, device=device)
    for factor in (b, b[:1].expand_as(b)):
        _, result = computed(SMALL | {"WAVES": waves}, a, factor)
        assert torch.equal(result.double(), a.double() @ factor.double())


@pytest.mark.parametrize("before", (0, 4))
@on_devices
def test_parts_are_added_in_the_order_of_k(device, before):
    """For the only tile, and for one after a whole wave. The next call finds the counters at zero."""
    with_wgmma(device)
    a, b = (t.float() for t in of_four_parts(4 * DEPTH, device=device))
    a, b = a.repeat(64, 1), b.repeat(64 * (before + 1), 1).t()
    launch, result = computed(SMALL | {"BLOCKS": 4}, a, b)
    assert launch.arguments[-1] == 4 and result[:, -64:].unique().tolist() == [2.0]
    assert not launch.arguments[-3].any()


def problem_of(m, n, k):
    a, b = torch.empty(m, k, device="meta"), torch.empty(k, n, device="meta")
    return prepare("matmul", a, b, precision="tf32x3").problem


@pytest.mark.parametrize(
    "n, k, more, expected",
    [
        (64, 32 * 100, {}, (0, 1, 8)),  # as many parts as may be
        (64, 32 * 100, {"PARTS": 32}, (0, 1, 25)),  # of 4 slices each
        (64, 32 * 3, {}, (0, 1, 1)),
        (64 * 20, 6912, {}, (0, 20, 132)),
        (64 * 10, 6912, {"PARTS": 128}, (0, 10, 130)),  # 13 of each tile
        (64 * 10, 32 * 11, {"PARTS": 128}, (0, 10, 20)),
        (64 * 20, 6912, {"PARTS": 128}, (0, 20, 120)),
        (64 * 132, 2048, {}, (132, 0, 0)),
        (64 * 133, 2048, {}, (132, 1, 8)),
        (64 * 133, 2048, {"WAVES": 2}, (0, 133, 132)),
        (64 * 131, 32, {}, (0, 131, 131)),  # no tile is cut
        (64 * 140, 0, {}, (140, 0, 0)),
        (64 * 2, 0, {"PARTS": 128}, (2, 0, 0)),
    ],
)
def test_cut(n, k, more, expected):
    assert cut(problem_of(64, n, k), SMALL | {"BLOCKS": 132} | more, 1) == expected


@pytest.mark.parametrize("tiles", range(2, 17))
def test_parts_of_few_tiles_begin_together(tiles):
    """So that the blocks of neighbours are at the same k, and L2 has what they have in common."""
    whole, left, sharers = cut(problem_of(64, 64 * tiles, 32 * 1000), SMALL | {"BLOCKS": 132, "PARTS": 128}, 1)
    assert (whole, left) == (0, tiles) and sharers % tiles == 0 and 132 - tiles < sharers <= 132


@pytest.mark.parametrize("tiles", (1, 20, 131, 132, 133, 263, 264, 265, 1000))
def test_work_has_the_slices_of_the_busiest_block(tiles):
    target, problem = Target.named("h200"), problem_of(64, 64 * tiles, 2048)
    for config in DESIGN.configs(problem, target):
        whole, left, sharers = cut(problem, config, 1)
        slices = -(-whole // config["BLOCKS"]) * 64 + (-(-left * 64 // sharers) if left else 0)
        assert DESIGN.work(problem, config, target)[0].flops == 2 * config["BM"] * config["BN"] * DEPTH * slices


def test_configs_are_different_cuts_that_fit():
    target = Target.named("h200")
    for m, n, k in ((4096, 4096, 4096), (64, 1280, 6912), (64, 64, 2**15)):
        call = prepare("matmul", torch.empty(m, k, device="meta"), torch.empty(k, n, device="meta"), precision="tf32x3")
        cuts = []
        for config in DESIGN.configs(call.problem, target):
            (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
            assert launch.shared_bytes <= target.shared_per_block and max(launch.grid) <= config["BLOCKS"]
            cuts.append((config["BM"], config["BN"], *cut(call.problem, config, 1)))
        assert len(set(cuts)) == len(cuts) >= 8
