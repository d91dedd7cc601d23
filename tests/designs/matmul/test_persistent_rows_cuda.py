"""Results of persistent whose rows TMA cannot write: by way of shared memory, in words of 8, 4 or 2 bytes."""

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY
from cuda_reference.matmul import persistent
from cuda_reference.trace import trace
from tests.harness import prepare, random, run_checked, short, transposed
from tritonkernels.target import Target

ALONE, WIDE, WIDEST = {"BM": 64, "BN": 64}, {"BM": 128, "BN": 192}, {"BM": 128, "BN": 320}
IN_TURN = {"BM": 128, "BN": 192, "IN_TURN": True}
DTYPES = {"fp16": (torch.float16, None), "bf16": (torch.bfloat16, None), "float32": (torch.float16, torch.float32)}


def config_of(call, tile):
    return next(c for c in persistent.DESIGN.configs(call.problem, Target.named("simt")) if tile.items() <= c.items())


@short(lambda tile, columns, dtype: dtype == "fp16" or (tile, columns) == (ALONE, 78))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 76, 78, 135, 444])
@pytest.mark.parametrize("tile", [ALONE, WIDE, WIDEST, IN_TURN], ids=str)
def test_rows_of_any_length(tile, columns, dtype):
    """Whole words and parts of them, one column and more than a box; rows and columns beyond the edge are left alone."""
    element, out_dtype = DTYPES[dtype]
    a, b = random(150, 72, dtype=element), transposed(random(72, columns, dtype=element))
    bias = None if tile == IN_TURN else random(columns, dtype=out_dtype or element)
    call = prepare("matmul", a, b, bias=bias, out_dtype=out_dtype)
    (launch,) = persistent.DESIGN.launches(call.problem, config_of(call, tile), *call.parts[0])
    by_tma = call.result.stride(0) * call.result.element_size() % 16 == 0
    assert launch.expression.endswith(f", {str(by_tma).lower()}>")
    run_checked(LIBRARY, "matmul", "persistent", a, b, bias=bias, out_dtype=out_dtype, config=config_of(call, tile))


@pytest.mark.parametrize("first, pitch", [(0, 200), (4, 200), (2, 204), (1, 204), (0, 202), (3, 201)], ids=str)
def test_a_result_inside_of_a_matrix(first, pitch):
    """Words as long as what rows begin at and what lies between them allow; what is around the result stays."""
    a, b = random(2, 70, 72, dtype=torch.float16), transposed(random(2, 72, 100, dtype=torch.float16))
    around = torch.full((2, 70, pitch), 7.0, dtype=torch.float16)
    out = around[:, :, first : first + 100]
    config = config_of(prepare("matmul", a, b), WIDE)
    expected, _ = run_checked(LIBRARY, "matmul", "persistent", a, b, config=config)
    assert torch.equal(cuda_reference.matmul(a, b, out=out, design="persistent", config=config), expected)
    around[:, :, first : first + 100] = 7
    assert (around == 7).all()


@pytest.mark.parametrize("first, pitch, word", [(0, 200, 8), (4, 204, 8), (2, 204, 4), (0, 202, 4), (1, 204, 2), (0, 201, 2)])
def test_words_as_long_as_the_alignment_allows(first, pitch, word):
    a, b = random(128, 64, dtype=torch.float16), transposed(random(64, 100, dtype=torch.float16))
    call = prepare("matmul", a, b, out=torch.empty(128, pitch, dtype=torch.float16)[:, first : first + 100])
    (traced,) = trace(*persistent.DESIGN.launches(call.problem, config_of(call, WIDE), *call.parts[0]))
    assert traced.races == ()
    written = [access for access in traced.accesses if (access.kind, access.space) == ("write", "global")]
    assert max(access.width for access in written) == word
