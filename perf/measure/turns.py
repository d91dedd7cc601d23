"""Runs that are compared take turns in random order, so that drifting clocks affect all alike."""

import contextlib
import random
import statistics

import torch

from tritonkernels import native
from tritonkernels.errors import TritonKernelsError

WARM_UPS = 5  # builds, plans, compilation, cuDNN's search


def in_turns(runs, rounds):
    """{name: the median, the 20th and the 80th percentile} of what the runs return, called in random order."""
    shuffled, samples = random.Random(0), {name: [] for name in runs}
    for _ in range(rounds):
        for name in shuffled.sample(list(runs), len(runs)):
            samples[name].append(runs[name]())
    return {name: _summary(values) for name, values in samples.items()}


def _summary(values):
    p20, _, _, p80 = statistics.quantiles(values, n=5, method="inclusive")
    return {"median_us": statistics.median(values), "p20_us": p20, "p80_us": p80}


def warm(runs):
    """Do each of {name: run} some times on a side stream, as a capture of gradients needs it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for run in runs.values():
            for _ in range(WARM_UPS):
                run()
    torch.cuda.current_stream().wait_stream(side)


def build_native(device):
    """Build the C++ that repeats calls before anything is timed: users' first calls start it in the background.

    Where it cannot be built, calls are repeated in Python: then that is what users have, too.
    """
    if native.is_for(device):
        with contextlib.suppress(TritonKernelsError):
            native.load()
