"""Batches of matrices as kernels take them: every element once, whatever broadcasts."""

import itertools

import torch

from tritonkernels.batches import uniform_batches


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
