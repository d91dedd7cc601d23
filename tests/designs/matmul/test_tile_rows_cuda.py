"""Results of pipelined and split_k whose rows are no whole chunks: written by way of shared memory, where slices were."""

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY
from cuda_reference.matmul import pipelined, split_k
from cuda_reference.trace import trace
from tests.harness import prepare, random, run_checked, short, transposed
from tritonkernels.target import Target

DESIGNS = {"pipelined": pipelined.DESIGN, "split_k": split_k.DESIGN}
TILES = ({"BM": 64, "BN": 64}, {"BM": 128, "BN": 64}, {"BM": 16, "BN": 64}, {"BM": 64, "BN": 16})
ELEMENTS = {
    "fp16": (torch.float16, {}),
    "bf16": (torch.bfloat16, {}),
    "float32": (torch.float16, {"out_dtype": torch.float32}),
    "tf32": (torch.float32, {"precision": "tf32"}),
    "int32": (torch.int8, {}),
    "fp64": (torch.float64, {}),
}


def config_of(call, design, tile):
    """The config with this tile; None if a thin product has none."""
    return next((c for c in DESIGNS[design].configs(call.problem, Target.named("simt")) if tile.items() <= c.items()), None)


def product_of(call, design, config):
    """The launch after those that align operands."""
    return [*DESIGNS[design].launches(call.problem, config, *call.parts[0])][-1]


@short(lambda design, tile, columns, kind: kind == "fp16" or (design == "pipelined" and tile == TILES[0] and columns == 75))
@pytest.mark.parametrize("kind", ELEMENTS)
@pytest.mark.parametrize("columns", [1, 3, 13, 75, 90, 130])
@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("design", DESIGNS)
def test_rows_of_any_length(design, tile, columns, kind):
    """Rows of words of 8, 4 and 2 bytes, with all that may follow the sums; what is around the result stays (run_checked)."""
    dtype, options = ELEMENTS[kind]
    rows = 13 if tile["BM"] == 16 else 77
    if tile["BN"] == 16:
        columns = min(columns, 13)
    a, b = random(rows, 200, dtype=dtype), transposed(random(200, columns, dtype=dtype))
    call = prepare("matmul", a, b, **options)
    out_dtype = call.result.dtype
    c, bias = random(rows, columns, dtype=out_dtype), random(columns, dtype=out_dtype)
    if out_dtype == torch.int32:  # nothing wraps around
        c, bias = c // 8, bias // 8
    options = {**options, "c": c, "beta": 2, "bias": bias, "activation": "relu"}
    call = prepare("matmul", a, b, **options)
    config = config_of(call, design, tile)
    if config is not None:
        whole = call.result.stride(0) * call.result.element_size() % 16 == 0
        assert product_of(call, design, config).expression.endswith(f", {str(not whole).lower()}>")
        run_checked(LIBRARY, "matmul", design, a, b, config=config, **options)


@pytest.mark.parametrize("first, pitch", [(0, 200), (8, 200), (4, 200), (2, 204), (1, 204), (0, 202), (3, 201)], ids=str)
@pytest.mark.parametrize("design", DESIGNS)
def test_a_result_inside_of_a_matrix(design, first, pitch):
    """Only rows that begin at whole chunks are written straight from registers."""
    a, b = random(2, 70, 72, dtype=torch.float16), random(2, 72, 100, dtype=torch.float16)
    around = torch.full((2, 70, pitch), 7.0, dtype=torch.float16)
    out = around[:, :, first : first + 100]
    call = prepare("matmul", a, b, out=out)
    config = config_of(call, design, TILES[0])
    whole = first % 8 == pitch % 8 == 0
    assert product_of(call, design, config).expression.endswith(f", {str(not whole).lower()}>")
    expected, _ = run_checked(LIBRARY, "matmul", design, a, b, config=config)
    assert torch.equal(cuda_reference.matmul(a, b, out=out, design=design, config=config), expected)
    around[:, :, first : first + 100] = 7
    assert (around == 7).all()


@pytest.mark.parametrize("columns, word", [(100, 8), (98, 4), (99, 2)])
@pytest.mark.parametrize("design", DESIGNS)
def test_no_slice_is_overwritten_that_is_still_read(design, columns, word):
    """Three slices in as many stages: what is read ahead at the end, for nothing, is where the results begin."""
    a, b = random(128, 192, dtype=torch.float16), transposed(random(192, columns, dtype=torch.float16))
    call = prepare("matmul", a, b)
    *_, traced = trace(*DESIGNS[design].launches(call.problem, config_of(call, design, TILES[1]), *call.parts[0]))
    assert traced.races == ()
    written = {access.width for access in traced.accesses if (access.kind, access.space) == ("write", "global")}
    assert word in written and (design == "split_k" or max(written) == word)


@pytest.mark.parametrize("design", DESIGNS)
def test_columns_that_are_no_neighbours(design):
    a, b = random(70, 72, dtype=torch.float16), random(72, 99, dtype=torch.float16)
    call = prepare("matmul", a, b)
    config = config_of(call, design, TILES[0])
    expected, _ = run_checked(LIBRARY, "matmul", design, a, b, config=config)
    for out in (torch.empty(99, 70, dtype=a.dtype).mT, torch.empty(70, 198, dtype=a.dtype)[:, ::2]):
        assert torch.equal(cuda_reference.matmul(a, b, out=out, design=design, config=config), expected)
