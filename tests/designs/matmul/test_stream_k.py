"""The Triton design stream_k of matmul: which tiles are shared to the slice, at the edges of waves and of K."""

import pytest
import torch
import triton

from tests.designs.matmul.exact import integers
from tests.harness import DEVICES, available_on, prepare
from tritonkernels.choice.work import MANY, streamed
from tritonkernels.gemm.stream_k import cut
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

PROGRAMS = 4
(STREAM_K,) = (d for d in LIBRARY.designs("matmul") if d.name == "stream_k")
on_devices = pytest.mark.parametrize("device", DEVICES)


def computed(call, waves, programs=PROGRAMS):
    """The result, by small tiles and few programs."""
    tile = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "GROUP_M": 2, "PACK_A": False, "PACK_B": False}
    config = triton.Config(tile | {"PROGRAMS": programs, "WAVES": waves}, num_warps=4, num_stages=2)
    call.result.fill_(torch.nan)
    for tensors in call.parts:
        for launch in STREAM_K.launches(call.problem, config, *tensors):
            launch.run()
    return call.result


@pytest.mark.parametrize("waves", (1, 2))
@pytest.mark.parametrize("k", (0, 16, 40, 100))
@pytest.mark.parametrize("tiles", (1, 3, PROGRAMS, PROGRAMS + 1, 2 * PROGRAMS - 1, 2 * PROGRAMS, 2 * PROGRAMS + 1, 11))
@on_devices
def test_at_the_edges_of_waves(device, tiles, k, waves):
    available_on(LIBRARY, device)
    a, b, c = (integers(*shape, device=device) for shape in ((9, k), (k, 16 * tiles - 3), (9, 16 * tiles - 3)))
    result = computed(prepare("matmul", a, b, c=c, beta=0.5, activation="relu"), waves)
    assert torch.equal(result.double().cpu(), (a.double() @ b.double() + c.double() / 2).relu().half().double().cpu())


@pytest.mark.parametrize("k", (0, 16, 40, 16 * 37, 16 * 40 + 5))
@pytest.mark.parametrize("tiles", (1, 2, 3))
@on_devices
def test_tiles_of_many_parts(device, tiles, k):
    """27 programs, 27, 13 or 9 a tile, or fewer: as many as there are slices, and some of the last one past K."""
    available_on(LIBRARY, device)
    for operands in ((9, k), (k, 16 * tiles - 3)), ((16 * (tiles - 1) + 1, k), (k, 16)):
        a, b = (integers(*shape, device=device) for shape in operands)
        result = computed(prepare("matmul", a, b, out_dtype=torch.float32), 1, programs=27)
        assert torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("k", (1, 64, 640, 64 * 1000 + 1, 148896))
@pytest.mark.parametrize("tiles", (*range(1, 20), 133, 140, 149, 264))
def test_parts_of_few_tiles_begin_together(tiles, k):
    """So that the programs of neighbours are at the same k, and L2 has what they have in common."""
    tile = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "PROGRAMS": 132}
    programs, shared, pieces = cut(tiles, k, tile, 1, torch.float32, "meta")
    slices, own = pieces.slices_per_tile, pieces.slices_per_program
    assert shared * slices <= programs * own and programs <= 132 and slices * 64 >= k > (slices - max(1, own)) * 64
    if 0 < MANY * shared < 132:
        assert slices % own == 0 and own <= -(-slices // (132 // shared))


@pytest.mark.parametrize("waves", (1, 2))
@pytest.mark.parametrize("batch, n", [(3, 45), (5, 29), (7, 1)])
@on_devices
def test_a_wave_goes_from_one_matrix_of_a_batch_to_the_next(device, batch, n, waves):
    available_on(LIBRARY, device)
    a, b = integers(batch, 23, 70, device=device), integers(batch, 70, n, device=device)
    assert torch.equal(computed(prepare("matmul", a, b, out_dtype=torch.float32), waves).double(), a.double() @ b.double())


@pytest.mark.parametrize("before", (0, PROGRAMS))
@on_devices
def test_parts_are_added_in_the_order_of_k(device, before):
    """1 is lost in 2^26, which goes before 2 comes. A slice a program, of the only tile and of one after a whole wave."""
    available_on(LIBRARY, device)
    a, b = (torch.zeros(64, dtype=torch.float16, device=device) for _ in range(2))
    a[::16] = torch.tensor([1.0, 2.0**13, -(2.0**13), 2.0])
    b[::16] = torch.tensor([1.0, 2.0**13, 2.0**13, 1.0])
    a, b = a.expand(16, -1), b[:, None].expand(-1, 16 * (before + 1))
    result = computed(prepare("matmul", a, b, out_dtype=torch.float32), waves=1)
    assert result[:, -16:].unique().tolist() == [2.0]


def test_tiles_that_are_shared():
    assert [streamed(tiles, 4, 1) for tiles in range(1, 14)] == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert [streamed(tiles, 4, 2) for tiles in range(1, 14)] == [1, 2, 3, 0, 5, 6, 7, 0, 5, 6, 7, 0, 5]


@pytest.mark.parametrize("tiles", (1, 131, 132, 133, 263, 264, 265, 1000))
def test_work_has_the_slices_of_the_busiest_program(tiles):
    target, counts = Target.named("h200"), []
    a, b = (torch.empty(shape, dtype=torch.float16, device="meta") for shape in ((100, 1000), (1000, 128 * tiles)))
    call = prepare("matmul", a, b)
    for config in STREAM_K.configs(call.problem, target):
        launch, *_ = STREAM_K.launches(call.problem, config, *call.parts[0])
        pieces, sizes = launch.values["pieces"], [config.kwargs[f"BLOCK_{name}"] for name in "MNK"]
        slices = pieces.whole_tiles // 132 * pieces.slices_per_tile + pieces.slices_per_program
        assert STREAM_K.work(call.problem, config, target)[0].flops == 2 * sizes[0] * sizes[1] * sizes[2] * slices
        assert slices == -(-tiles * 16 // 132)
        counts.append(streamed(tiles, 132, config.kwargs["WAVES"]))
    assert len(counts) == len(set(counts)), "no two configs are the same cut"
