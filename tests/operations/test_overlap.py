"""Which `out` is refused because it shares memory with itself or an operand, compared with a list of all addresses."""

import random

import numpy
import pytest
import torch

from tritonkernels import validate
from tritonkernels.errors import OverlapError


def places(t):
    """The places of a tensor's elements in its buffer."""
    found = torch.tensor([t.storage_offset()])
    for size, stride in zip(t.shape, t.stride()):
        found = (found[:, None] + torch.arange(size) * stride).flatten()
    return found


def is_refused(out):
    try:
        validate.result(out, out.shape, out.dtype, out.device)
    except OverlapError:
        return True
    return False


def views(buffer, count, ranks, sizes, strides):
    """Views of the buffer, the same in every run."""
    draw = random.Random(0)

    def view():
        rank = draw.randint(*ranks)
        shape, steps = ([draw.randint(*limits) for _ in range(rank)] for limits in (sizes, strides))
        return buffer.as_strided(shape, steps, draw.randint(*strides))

    return [view() for _ in range(count)]


@pytest.mark.parametrize("shape, strides", [((3, 2, 2), (1, 3, 4)), ((2, 2), (1, 1)), ((2, 3), (2, 1)), ((4,), (0,))], ids=str)
def test_an_out_that_overlaps_itself(shape, strides):
    assert is_refused(torch.zeros(64).as_strided(shape, strides))


def test_every_out_that_overlaps_itself_is_refused_and_no_part_of_a_tensor():
    found = views(torch.zeros(100), 1000, ranks=(1, 4), sizes=(1, 4), strides=(0, 6))
    overlapping = [places(t).unique().numel() < t.numel() for t in found]
    assert 100 < sum(overlapping) < 900
    assert all(is_refused(t) for t, overlaps in zip(found, overlapping) if overlaps)
    whole = torch.zeros(3, 4, 5, 6)
    for part in (whole, whole[:, 1:3, ::2], whole[:1, :, 2:3], whole[..., 5], whole[:0]):
        for dims in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
            assert not is_refused(part.permute(*dims, *range(3, part.ndim)))


def test_an_out_that_shares_memory_with_an_operand():
    """Exact if numpy's solver finds an answer; refused if it gives up, as on views with several large strides."""
    plain = views(torch.zeros(700), 400, ranks=(1, 4), sizes=(0, 4), strides=(0, 40))
    sparse = views(torch.empty(2**27, dtype=torch.int8), 200, ranks=(4, 6), sizes=(2, 7), strides=(1, 3 * 10**6))
    seen = {(gave_up, share): 0 for gave_up in (True, False) for share in (True, False)}
    for a, b in zip((plain + sparse)[::2], (plain + sparse)[1::2]):
        share = bool(torch.isin(places(a), places(b)).any())
        try:
            numpy.shares_memory(*map(validate._Addresses.array, (a, b)), max_work=100_000)
            gave_up = False
        except numpy.exceptions.TooHardError:
            gave_up = True
        seen[gave_up, share] += 1
        assert validate._share_memory(a, b) == (share or gave_up), (a.shape, a.stride(), b.shape, b.stride())
    assert min(seen.values()) > 5, seen
