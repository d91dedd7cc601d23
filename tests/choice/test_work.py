"""Work of gemv's and the convolutions' designs: the blocks and threads of their launches, and no less work than there is."""

import math

import pytest
import torch

from tests.harness import LIBRARIES, prepare
from tritonkernels.target import Target

H200 = Target.named("h200")
F32, F16, F64, INT8 = torch.float32, torch.float16, torch.float64, torch.int8


def empty(*shape, dtype=F32):
    return torch.empty(shape, dtype=dtype, device="meta")


def gemv(m, n, dtype=F32, batch=(), col=False, **options):
    a, x = empty(*batch, *((n, m) if col else (m, n)), dtype=dtype), empty(*batch, n, dtype=F16 if dtype == INT8 else dtype)
    options |= {"scale": empty(m)} if dtype == INT8 else {}
    return prepare("gemv", a.mT if col else a, x, **options)


GEMV = [
    gemv(m, n, dtype, **options)
    for m, n in ((4096, 4096), (1, 10**6), (16384, 16), (10**6, 3), (37, 70), (64, 1), (129, 65536))
    for dtype, options in ((F32, {}), (F16, {"batch": (3,)}), (F32, {"col": True}), (INT8, {"col": True}), (INT8, {}))
]


def launched(design, call, config):
    """(blocks, threads) of each kernel."""
    for launch in design.launches(call.problem, config, *call.parts[0]):
        threads = math.prod(launch.block) if hasattr(launch, "block") else H200.warp_size * launch.config.num_warps
        yield math.prod(launch.grid), threads


def works(op, calls):
    """(design, call, config, its Works) of both packages' designs that take the calls."""
    for library in LIBRARIES:
        for design in library.designs(op):
            taken = [call for call in calls if design.refuses(call.problem, H200) is None]
            assert taken, f"{library.package} {op}.{design.name} takes none of the calls"
            for call in taken:
                for config in design.configs(call.problem, H200):
                    yield design, call, config, design.work(call.problem, config, H200)


CALLS = {"gemv": GEMV}


@pytest.mark.parametrize("op", CALLS)
def test_kernels_are_those_of_the_launches(op):
    for design, call, config, found in works(op, CALLS[op]):
        kernels = [(work.blocks, work.threads) for work in found]
        assert kernels == list(launched(design, call, config)), (design, call.problem, config)


@pytest.mark.parametrize("op", CALLS)
def test_no_less_than_the_problem_s(op):
    for design, call, config, found in works(op, CALLS[op]):
        problem, case = call.problem, (design, call.problem, config, found)
        assert sum(work.dram for work in found) >= problem.bytes, case
        assert sum(work.blocks * work.fetched for work in found) >= problem.bytes, case
        transform = design.transform(config if isinstance(config, dict) else config.kwargs)
        assert transform or sum(work.blocks * work.flops for work in found) >= problem.flops, case
        assert all(work.steps >= 1 for work in found), case
