"""The clock of the tuner and of the sweep, on a GPU."""

import functools
import gc
import weakref

import pytest
import torch

from tritonkernels.choice.clock import GpuClock

pytestmark = pytest.mark.gpu


def test_a_replay_keeps_the_tensors_of_its_call():
    """It reads and writes their memory; freed, that would be another tensor's, or nobody's."""
    clock, out = GpuClock(torch.device("cuda", 0)), torch.zeros(1000, device="cuda")
    call = functools.partial(torch.add, torch.ones(1000, device="cuda"), 1.0, out=out)
    call()
    replay, kept = clock.replay(call), weakref.ref(out)
    del call, out
    gc.collect()
    assert kept() is not None
    kept().zero_()
    replay()
    clock.synchronize()
    assert (kept() == 2).all()
