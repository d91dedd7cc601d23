"""The same bits over repeats, numbers of CPU threads and processes, for every design of both packages."""

import functools
import json

import pytest
import torch

from tests import children
from tests.concurrency.calls import COMBINING, digest
from tests.harness import DEVICES, available_on, designs, short


def of_another_process(device, *names):
    run = children.run("-m", "tests.concurrency.calls", device, *names)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture
def with_threads(monkeypatch):
    before = torch.get_num_threads()

    def set_threads(count):
        torch.set_num_threads(count)
        monkeypatch.setenv("SIMT_THREADS", str(count))

    yield set_threads
    torch.set_num_threads(before)


# The order inside of a block is the kernel's own, and test_designs_in_the_emulation.py changes it.
@short(lambda design: design in COMBINING)
@pytest.mark.usefixtures("every_cuda_design_built")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("library, op, design", designs())
def test_the_same_bits_every_time(library, op, design, device, with_threads, everything, once):
    available_on(library, device)
    seen = set()
    for threads in (1, 2, 2):
        with_threads(threads)
        seen.add(digest(library, op, design, device))
    names = () if everything else COMBINING
    of_it = functools.partial(of_another_process, device, library.package, *names)
    digests = once(f"digests-{device}-{library.package}", of_it)
    assert seen == {digests[f"{library.package}-{op}-{design}"]}
