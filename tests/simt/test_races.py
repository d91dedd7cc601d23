"""In no CUDA design do two threads access the same bytes, one of them writing, without a barrier in between."""

import functools

import pytest

from cuda_reference.launch import LIBRARY
from cuda_reference.trace import trace
from tests.designs.test_gemm_ladder_cuda import CONFLICT_FREE
from tests.harness import Size, built, designs, prepare, random, suited, taken, thorough
from tritonkernels.target import Target

SHAPES = {
    "matmul": ((20, 40), (40, 24)),
    "gemm": ((70, 20), (20, 70)),
    "gemv": ((9, 70), (70,)),
    "conv2d": ((1, 3, 9, 17), (5, 3, 3, 3)),
    "conv2d_weight": ((1, 3, 9, 17), Size((5, 3, 3, 2)), (1, 5, 7, 16)),
    "conv2d_bias": ((2, 5, 20, 17),),
}
ELSEWHERE = {("gemm", design) for design in CONFLICT_FREE}  # tests/designs/test_gemm_ladder_cuda.py traces these
TRACED = [p for p in designs(*SHAPES) if p.values[0] is LIBRARY and p.values[1:] not in ELSEWHERE]


@thorough  # in `make test`, any order of threads gives the same bits (test_designs_in_the_emulation.py)
@pytest.mark.parametrize("library, op, design", TRACED)
def test_no_races(library, op, design):
    dtype, options = taken(library, op, design)
    shapes, _ = suited(library, op, design, SHAPES[op])
    call = prepare(op, *built(shapes, functools.partial(random, dtype=dtype)), **options)
    chosen = {d.name: d for d in library.designs(op)}[design]
    config = next(iter(chosen.configs(call.problem, Target.named("simt"))))
    traces = trace(*chosen.launches(call.problem, config, *call.parts[0]))
    assert [str(race) for t in traces for race in t.races] == []
    assert any(t.accesses for t in traces)
