"""gemm's stream_k in Triton: which tiles are shared to the slice, at the edges of waves and of K."""

import pytest
import torch
import triton

from tests.harness import DEVICES, available_on, prepare, small_integers
from tritonkernels.choice.work import MANY, streamed
from tritonkernels.gemm.stream_k import WAVES, cut
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

PROGRAMS = 4
(STREAM_K,) = (d for d in LIBRARY.designs("gemm") if d.name == "stream_k")
on_devices = pytest.mark.parametrize("device", DEVICES)


def computed(call, programs=PROGRAMS):
    """The result, by small tiles and few programs."""
    tile = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "PROGRAMS": programs}
    call.result.fill_(torch.nan)
    for launch in STREAM_K.launches(call.problem, triton.Config(tile, num_warps=4, num_stages=2), *call.parts[0]):
        launch.run()
    return call.result


@pytest.mark.parametrize("k", (0, 16, 40, 100))
@pytest.mark.parametrize("tiles", (1, 3, PROGRAMS, PROGRAMS + 1, 2 * PROGRAMS - 1, 2 * PROGRAMS, 2 * PROGRAMS + 1, 11))
@on_devices
def test_at_the_edges_of_waves(device, tiles, k):
    available_on(LIBRARY, device)
    a, b, c = (small_integers(*shape, device=device) for shape in ((9, k), (k, 16 * tiles - 3), (9, 16 * tiles - 3)))
    result = computed(prepare("gemm", a, b, c, beta=0.5))
    assert torch.equal(result.double(), a.double() @ b.double() + c.double() / 2)


@pytest.mark.parametrize("k", (0, 16, 40, 16 * 37, 16 * 40 + 5))
@pytest.mark.parametrize("tiles", (1, 2, 3))
@on_devices
def test_tiles_of_many_parts(device, tiles, k):
    """27 programs, 27, 13 or 9 a tile, or fewer: as many as there are slices, and some of the last one past K."""
    available_on(LIBRARY, device)
    for operands in ((9, k), (k, 16 * tiles - 3)), ((16 * (tiles - 1) + 1, k), (k, 16)):
        a, b = (small_integers(*shape, device=device) for shape in operands)
        assert torch.equal(computed(prepare("gemm", a, b), programs=27).double(), a.double() @ b.double())


@pytest.mark.parametrize("k", (1, 64, 640, 64 * 1000 + 1, 148896))
@pytest.mark.parametrize("tiles", (*range(1, 20), 133, 140, 149, 264))
def test_parts_of_few_tiles_begin_together(tiles, k):
    """So that the programs of neighbours are at the same k, and L2 has what they have in common."""
    tile = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "PROGRAMS": 132}
    programs, shared, pieces = cut(tiles, k, tile, "meta")
    slices, own = pieces.slices_per_tile, pieces.slices_per_program
    assert shared * slices <= programs * own and programs <= 132 and slices * 64 >= k > (slices - max(1, own)) * 64
    if 0 < MANY * shared < 132:
        assert slices % own == 0 and own <= -(-slices // (132 // shared))


@on_devices
def test_parts_are_added_in_the_order_of_k(device):
    """1 is lost in 2^26, which goes before 2 comes. A slice a program, of the only tile."""
    available_on(LIBRARY, device)
    a, b = (torch.zeros(64, device=device) for _ in range(2))
    a[::16] = torch.tensor([1.0, 2.0**13, -(2.0**13), 2.0])
    b[::16] = torch.tensor([1.0, 2.0**13, 2.0**13, 1.0])
    result = computed(prepare("gemm", a.expand(16, -1), b[:, None].expand(-1, 16)))
    assert result.unique().tolist() == [2.0]


def test_tiles_that_are_shared():
    assert [streamed(tiles, 4, 1) for tiles in range(1, 14)] == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert [streamed(tiles, 4, 2) for tiles in range(1, 14)] == [1, 2, 3, 0, 5, 6, 7, 0, 5, 6, 7, 0, 5]


@pytest.mark.parametrize("tiles", (1, 131, 132, 133, 263, 264, 265, 1000))
def test_work_has_the_slices_of_the_busiest_program(tiles):
    target = Target.named("h200")
    call = prepare("gemm", torch.empty(100, 1024, device="meta"), torch.empty(1024, 128 * tiles, device="meta"))
    for config in STREAM_K.configs(call.problem, target):
        launch, *_ = STREAM_K.launches(call.problem, config, *call.parts[0])
        pieces, sizes = launch.values["pieces"], [config.kwargs[f"BLOCK_{name}"] for name in "MNK"]
        slices = pieces.whole_tiles // 132 * pieces.slices_per_tile + pieces.slices_per_program
        assert STREAM_K.work(call.problem, config, target)[0].flops == 2 * sizes[0] * sizes[1] * sizes[2] * slices
        count = -(-100 // sizes[0]) * -(-128 * tiles // sizes[1])
        assert count - pieces.whole_tiles == streamed(count, 132, WAVES)
