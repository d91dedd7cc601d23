"""Batches of matrices as kernels take them: every element once, whatever broadcasts; and any number of matrices."""

import collections
import itertools

import pytest
import torch

from cuda_reference.matmul.parts import add_parts
from cuda_reference.matmul.parts.arguments import arguments
from tests.harness import LIBRARIES, prepare
from tritonkernels.batches import uniform_batches
from tritonkernels.target import Target

H200 = Target.named("h200")


def test_uniform_batches():
    """Every batch of three dimensions of 1 to 3: an operand that lacks or broadcasts any of them, with a whole one."""
    for shape in itertools.product((1, 2, 3), repeat=3):
        for broadcast, missing in itertools.product(itertools.product((False, True), repeat=3), range(4)):
            small = [1 if b else size for size, b in zip(shape, broadcast)][missing:]
            operand = torch.arange(4 * torch.Size(small).numel()).view(*small, 2, 2).expand(*shape, 2, 2)
            result = torch.arange(4 * torch.Size(shape).numel()).view(*shape, 2, 2)
            parts = [torch.stack([part.flatten() for part in parts]) for parts in uniform_batches(operand, result)]
            pairs = torch.cat(parts, 1)
            wanted = torch.stack([operand.flatten(), result.flatten()])
            assert torch.equal(pairs[:, pairs[1].argsort()], wanted), (shape, broadcast, missing)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_a_batch_has_any_number_of_matrices(library):
    """A grid has up to 2^31 - 1 blocks along x, and 65,535 along y and z."""
    half = torch.empty(2**16 + 1, 3, 8, dtype=torch.float16, device="meta")
    single, seen = half.float(), collections.Counter()
    products = [prepare("matmul", half, half.mT)]
    products += [prepare("matmul", single, single.mT, precision=mode) for mode in ("ieee", "tf32", "fp16x3", "bf16x6")]
    for call in (*products, prepare("gemv", single, single[:, 0])):
        for design in library.designs(call.problem.op):
            if not design.refuses(call.problem, H200):
                for config in itertools.islice(design.configs(call.problem, H200), 4):
                    launches = list(design.launches(call.problem, config, *call.parts[0]))
                    assert all(max(launch.grid[1:], default=1) < 2**16 for launch in launches), (design, config)
                    seen[call.problem.op] += len(launches)
    assert seen["matmul"] > 50 and seen["gemv"] > 10


def test_a_batch_of_any_number_has_its_splits_added_up():
    half = torch.empty(2**16 + 1, 3, 8, dtype=torch.float16, device="meta")
    call, sums = prepare("matmul", half, half.mT), torch.empty(2 * len(half), 3, 4, device="meta")
    launch = add_parts.addition(call.problem, 2, sums, arguments(call.problem, *call.parts[0]))
    assert launch.grid[0] >= len(half) and max(launch.grid[1:], default=1) < 2**16
