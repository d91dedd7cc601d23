"""The CUDA design prefetched: its loads while a channel is multiplied, in the trace and in the machine code."""

import pytest
import torch

from cuda_reference.launch import LIBRARY
from perf.offline import sass
from tests import nvcc
from tests.harness import prepare, random, thorough
from tritonkernels.target import Target

DESIGNS = {design.name: design for design in LIBRARY.designs("conv2d")}
PREFETCHED, SIMT = DESIGNS["prefetched"], Target.named("simt")


def launch_of(*operands, **options):
    call = prepare("conv2d", *operands, **options)
    (launch,) = PREFETCHED.launches(call.problem, next(iter(PREFETCHED.configs(call.problem, SIMT))), *call.parts[0])
    return launch


def test_direct_in_the_same_order():
    input, weight, bias = random(2, 5, 9, 17), random(6, 5, 3, 3), random(6)
    results = [
        LIBRARY.run(prepare("conv2d", input, weight, bias, padding=1), design).clone() for design in ("direct", "prefetched")
    ]
    assert torch.equal(*results)


def test_what_does_not_fit_is_refused():
    problem = prepare("conv2d", torch.empty(1, 2, 150, 260), torch.empty(3, 2, 2, 2), stride=40, dilation=(30, 50)).problem
    assert "shared memory" in PREFETCHED.refuses(problem, SIMT)
    problem = prepare("conv2d", torch.empty(1, 2, 40, 40), torch.empty(32, 2, 19, 19)).problem
    assert PREFETCHED.refuses(problem, SIMT) is None
    assert {"KT": 16} not in PREFETCHED.configs(problem, SIMT), "it would take more shared memory"


def test_accesses():
    """Aligned rows are loaded by 16 bytes, each input once for all output channels; no races."""
    from cuda_reference.trace import trace

    (traced,) = trace(launch_of(random(1, 4, 12, 64), random(6, 4, 3, 3)))
    assert traced.races == ()
    inputs = [x for x in traced.accesses if x.array == "argument 0"]
    assert 16 in {x.width for x in inputs}
    weights = [x for x in traced.accesses if x.space == "shared" and x.kind == "read" and x.width == 16]
    assert weights and all(x.units == x.ideal_units for x in weights), "a tap's values are a broadcast"


@thorough
@nvcc.needed
@pytest.mark.parametrize("architecture", ("sm_80", "sm_90"))
def test_machine_code(architecture):
    """No spills; cp.async copies."""
    kernels = launch_of(random(1, 2, 8, 8), random(8, 2, 3, 3)).source.expressions
    codes = sass.read(nvcc.compiled(architecture.removeprefix("sm_"), ["conv2d/prefetched.cuh"], kernels).cubin).values()
    assert len(codes) == len(kernels) == 3
    for code in codes:
        assert code.stack_bytes == 0 and any(text.startswith("LDGSTS") for _, text in code.instructions), code.name
