"""CUDA's products of fp32 into rows that do not all begin on 16 bytes (cuda_reference/gemm/parts/shifted_rows.cuh)."""

import pytest
import torch

from cuda_reference.common.align import shifted
from cuda_reference.launch import LIBRARY
from tests.harness import DEVICES, prepare, random, run_checked, small_integers, transposed
from tritonkernels.target import Target

H200 = Target.named("h200")
# Lanes of a warp 4 x 8, with one quad or two of a row; 16 x 2; 2 x 16
TILES = {
    "rasterized": ("gemm", {"BM": 64, "BN": 64, "TM": 4}),
    "async_copy": ("gemm", {"BM": 64, "BN": 64}),
    "split_k": ("gemm", {"BM": 16, "BN": 128, "SPLITS": 2}),
    "stream_k": ("gemm", {"BM": 64, "BN": 64}),
    "cuda_cores": ("matmul", {"BM": 64, "BN": 64, "TM": 8, "SPLIT_K": 1}),
    "cuda_cores, narrow": ("matmul", {"BM": 128, "BN": 8, "SPLIT_K": 1}),
    "cuda_cores, low": ("matmul", {"BM": 8, "BN": 128, "SPLIT_K": 1}),
}


def launch(call, tile):
    """That of the design with its config, which a product of one tile has."""
    op, numbers = TILES[tile]
    design = next(d for d in LIBRARY.designs(op) if d.name == tile.partition(",")[0])
    one = prepare(op, *(torch.empty(*shape, device="meta") for shape in ((numbers["BM"], 64), (64, numbers["BN"])))).problem
    config = next(c for c in design.configs(one, H200) if numbers.items() <= c.items())
    (only,) = design.launches(call.problem, config, *call.parts[0])
    return only


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("pitch", range(140, 144))
def test_rows_that_begin_anywhere(device, tile, first, pitch):
    """A tile and some more each way, or less than a quad; C begins as the rows do, elsewhere, or lies by columns."""
    op, numbers = TILES[tile]
    m = numbers["BM"] + 3
    for n, add in ((3, "no"), (numbers["BN"] + 2, "such"), (numbers["BN"] - 1, "contiguous"), (numbers["BN"], "transposed")):
        a, b, c = (small_integers(*shape, device=device) for shape in ((m, 37), (37, n), (m, n)))
        around = torch.full((m, pitch), 7.5, device=device)
        out = around[:, first : first + n]
        if add == "such":
            c = torch.zeros_like(around)[:, first : first + n].copy_(c)
        c = None if add == "no" else transposed(c) if add == "transposed" else c
        call = prepare(op, a, b, c=c, alpha=2.0, beta=0.0 if c is None else -0.5, out=out)
        of_tile = launch(call, tile)
        flag = of_tile.expression.rstrip(">").split(", ")[-1 if op == "gemm" else 8]
        assert flag == str(shifted(out)).lower()
        of_tile.run()
        expected = 2 * (a.double() @ b.double()) - (0 if c is None else 0.5 * c.double())
        assert torch.equal(out.double(), expected), (n, add)
        out.fill_(7.5)
        assert (around == 7.5).all()


@pytest.mark.parametrize("device", DEVICES)
def test_matrices_of_a_batch_that_begin_differently(device):
    """Two of 5 x 9 have 45 elements between them. And all that may follow the sums."""
    a, b, c = random(3, 5, 40, device=device), random(3, 40, 9, device=device), random(3, 5, 9, device=device)
    run_checked(LIBRARY, "matmul", "cuda_cores", a, b)
    run_checked(LIBRARY, "matmul", "cuda_cores", a, b, c=c, beta=0.5, bias=c[0, 0], activation="silu")


def test_which_rows_shift():
    flat = torch.empty(200)
    assert not shifted(torch.empty(5, 8)) and not shifted(torch.empty(2, 5, 8))
    assert shifted(torch.empty(5, 9)) and shifted(torch.empty(2, 5, 9)) and shifted(torch.empty(5, 12)[:, 1:9])
    assert shifted(flat.as_strided((2, 5, 8), (42, 8, 1))), "aligned rows, but matrices that are not"
    assert not shifted(torch.empty(1, 9)) and not shifted(flat.as_strided((1, 5, 8), (42, 8, 1))), "strides of nothing"
    assert not shifted(torch.empty(9, 5).t()) and not shifted(torch.empty(5, 18)[:, ::2]), "no neighbours"


@pytest.mark.parametrize("tile", ("rasterized", "cuda_cores"))
def test_sectors_are_written_once_but_at_the_ends_of_a_warps_rows(tile):
    """A warp's 32 floats of a row are 7 words and four floats; or 64 are 15 words and four. C is read as out is written."""
    from cuda_reference.trace import trace

    op, numbers = TILES[tile]
    m, n = numbers["BM"], 2 * numbers["BN"] + 1
    a, b, c = random(m, 8), random(8, n), random(m, n)
    call = prepare(op, a, b, c=c if op == "gemm" else None)
    (traced,) = trace(launch(call, tile))
    assert traced.races == ()
    of_rows = [x for x in traced.accesses if x.array in (("argument 2", "argument 3") if op == "gemm" else ("argument 4",))]
    for array in {x.array for x in of_rows}:
        words, floats = ([x for x in of_rows if x.array == array and x.width == width] for width in (16, 4))
        assert {x.kind for x in words + floats} == {"read" if array == "argument 2" else "write"}
        in_sectors = sum(x.units for x in words + floats)
        assert in_sectors <= 2 * m * (n * 4 / 32 + 1) and sum(x.units for x in floats) <= m * (4 * (n // 32) + 4)
    assert of_rows
