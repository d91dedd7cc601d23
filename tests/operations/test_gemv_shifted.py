"""CUDA's gemv of rows that do not lie within 16 bytes as x does (cuda_reference/gemv/parts/vector_row.cuh)."""

import functools
import itertools

import pytest
import torch

from cuda_reference.gemv.parts.kernel import shifted
from cuda_reference.launch import LIBRARY
from tests.harness import DEVICES, offset_by_one, prepare, random, run_checked
from tests.memory.guarded import guarded
from tests.memory.test_memory import end_of
from tritonkernels import backend
from tritonkernels.target import Target

H200 = Target.named("h200")
DESIGNS = ("vectorized", "rows_per_warp", "block_per_row", "split_n")
HALF, INT8 = torch.float16, torch.int8
KINDS = ((torch.float32,) * 2, (HALF, HALF), (torch.bfloat16,) * 2, (INT8, HALF), (INT8, torch.float32), (torch.float64,) * 2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("design", DESIGNS)
def test_rows_and_x_that_begin_anywhere(device, design, kinds):
    """Lengths around one vector and two, and more than a round of loads; x ends with its memory, and other x are around it."""
    vector = 16 // kinds[0].itemsize
    for start in range(0, 16 // kinds[1].itemsize, 1 if kinds[1].itemsize > 2 else 3):
        for n in (1, vector - 1, vector + 1, 2 * vector + 1, 131, 40 * vector - 1):
            a, x = (
                random(5, n + (n + 1) % 2, dtype=kinds[0], device=device)[:, :n],
                random(start + n, dtype=kinds[1], device=device),
            )
            options = {"scale": random(5, device=device)} if kinds[0] == INT8 else {}
            run_checked(LIBRARY, "gemv", design, a, x[start:], **options)


def launched(design, a, x, **options):
    call = prepare("gemv", a, x, **options)
    chosen = {d.name: d for d in LIBRARY.designs("gemv")}[design]
    (launch,) = chosen.launches(call.problem, next(iter(chosen.configs(call.problem, H200))), *call.parts[0])
    return launch


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_columns_that_begin_anywhere(device, kinds):
    """Rows around a thread's two words and around a tile of 8 lanes; A ends with its memory."""
    vector = 16 // kinds[0].itemsize
    for start, m in itertools.product(
        (0, 1), (1, 2 * vector - 1, 2 * vector + 1, 8 * vector - 1, 8 * vector + 1, 10 * vector + 1)
    ):
        a, x = random(37, start + m, dtype=kinds[0], device=device)[:, start:].t(), random(37, dtype=kinds[1], device=device)
        options = {"scale": random(m, device=device)} if kinds[0] == INT8 else {}
        pitch_is_whole = (start + m) % vector == 0 or start + m == 1
        assert pitch_is_whole or launched("transposed", a, x, **options).expression.endswith(
            f", {str(kinds[0].itemsize < 4 and m >= 2 * vector).lower()}>"
        )
        run_checked(LIBRARY, "gemv", "transposed", a, x, **options)


@pytest.mark.skipif(backend.device_type() != "cpu", reason="guards CPU memory")
@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("design", ("vectorized", "split_n", "transposed"))
def test_no_word_lies_past_the_memory(design, side):
    """Rows and columns of every length within a vector and another; A and x end, or begin, at an unreadable page."""
    for n in range(65, 74):
        a = guarded(random(5, n | 1, dtype=HALF)[:, :n], side, read_only=True)
        x = guarded(random(5 if design == "transposed" else n, dtype=HALF), side, read_only=True)
        call = prepare("gemv", a.t() if design == "transposed" else a, x)
        assert end_of(functools.partial(LIBRARY.run, call, design)) == 0, n


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("design", DESIGNS)
def test_a_batch_of_x_of_an_odd_length(device, design):
    """Aligned rows, of which each matrix has another shift; and one x for all."""
    a, x = random(3, 4, 72, device=device)[..., :67], random(3, 67, device=device)
    run_checked(LIBRARY, "gemv", design, a, x)
    run_checked(LIBRARY, "gemv", design, a, x[1])


def test_which_rows_are_shifted():
    a, x = torch.empty(4, 8), torch.empty(9)
    assert not shifted(a, x[:8]) and shifted(a, x[1:]) and shifted(torch.empty(4, 9), x)
    assert not shifted(torch.empty(1, 9), x), "one row, which has no pitch"
    assert not shifted(torch.empty(33)[1:].view(4, 8), x[1:]) and shifted(torch.empty(33)[1:].view(4, 8), x[:8])
    assert shifted(torch.empty(2, 4, 8), torch.empty(2, 9)[:, :8]) and not shifted(torch.empty(2, 4, 8), x[:8].expand(2, 8))
    assert not shifted(a, torch.empty(18)[::2][:8]) and not shifted(torch.empty(9, 4).t(), x), "no neighbours"
    assert shifted(torch.empty(4, 24, dtype=INT8), torch.empty(24)) and not shifted(a.to(INT8), x[:8]), "a vector or more"
    assert not shifted(torch.empty(4, 16, dtype=INT8), x[:8].half()), "bytes count"
    ninth = torch.empty(72, dtype=INT8)[8:].view(4, 16)
    assert not shifted(ninth, torch.empty(16, dtype=HALF)) and shifted(ninth, torch.empty(20)[1:17])


@pytest.mark.parametrize("design", (*DESIGNS, "transposed"))
def test_loads_are_128_bits_but_at_the_ends(design):
    from cuda_reference.trace import trace

    is_transposed = design == "transposed"
    dtype, size = (HALF, 2) if is_transposed else (torch.float32, 4)
    a, x = offset_by_one(random(32, 512, dtype=dtype)), random(32 if is_transposed else 512, dtype=dtype)
    launch = launched(design, a.t() if is_transposed else a, x)
    assert launch.expression.endswith(", true>")
    (traced,) = trace(launch)
    for array in ("argument 0",) if is_transposed else ("argument 0", "argument 1"):
        wide, single = ([x for x in traced.accesses if (x.array, x.width) == (array, width)] for width in (16, size))
        assert wide and sum(x.units for x in single) <= 32 * 2 * 2 * 4, "two vectors at each end of a row, by element"
