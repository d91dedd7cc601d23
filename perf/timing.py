"""How long contenders take on a GPU, side by side.

Every round runs every contender once, in an order shuffled anew, so that drifting clocks and temperatures hit all alike.
Before each run the L2 cache is filled with other data. The same fill keeps the GPU busy while the host prepares the launch, so
that the time between the two events is the GPU's, not Python's; a run where the host was late nevertheless counts as exposed.
"""

import math
import random
import statistics
import time
from dataclasses import dataclass

import torch

from tritonkernels.target import Target

WARM_UPS = 5  # compilation, handles, cuDNN's search, clocks
ROUNDS = (30, 200)  # at least, at most
BUDGET_S = 2.0  # per case, after the least number of rounds


@dataclass(frozen=True)
class Timing:
    median_ms: float
    p20_ms: float
    p80_ms: float
    rounds: int
    exposed: float  # the share of runs that may include time of the host


class GpuClock:
    """Events and the cache flush of one GPU, on its current stream."""

    def __init__(self, device):
        self._device = device
        self._other_data = torch.empty(2 * Target.live(device).l2_bytes, dtype=torch.uint8, device=device)

    def flush(self):
        self._other_data.zero_()

    def event(self):
        """An event, already recorded: has .query() and .elapsed_time(later)."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event

    def synchronize(self):
        torch.cuda.synchronize(self._device)


def interleaved(runs, clock, seed, now=time.perf_counter):
    """{name: Timing} of runs, {name: (reset, call)}; reset, untimed, goes before each call."""
    for _, call in runs.values():
        for _ in range(WARM_UPS):
            call()
    flushes = _flushes_to_hide([call for _, call in runs.values()], clock, now)
    shuffled, samples, exposed = random.Random(seed), {name: [] for name in runs}, dict.fromkeys(runs, 0)
    started = now()
    for done in range(ROUNDS[1]):
        if done >= ROUNDS[0] and now() - started > BUDGET_S:
            break
        for name in shuffled.sample(list(runs), len(runs)):
            reset, call = runs[name]
            reset()
            for _ in range(flushes):
                clock.flush()
            start = clock.event()
            call()
            stop = clock.event()
            exposed[name] += start.query()  # the GPU is past `start` already: it may have waited for the host
            clock.synchronize()
            samples[name].append(start.elapsed_time(stop))
    return {name: summary(samples[name], exposed[name]) for name in runs}


def summary(samples, exposed=0):
    p20, _, _, p80 = statistics.quantiles(samples, n=5, method="inclusive")
    return Timing(statistics.median(samples), p20, p80, len(samples), exposed / len(samples))


def _flushes_to_hide(calls, clock, now):
    """How often to flush so that the GPU is busy twice as long as the slowest call takes the host."""
    host_s = 0.0
    for call in calls:
        clock.synchronize()
        started = now()
        call()
        host_s = max(host_s, now() - started)
    clock.flush()
    start = clock.event()
    clock.flush()
    stop = clock.event()
    clock.synchronize()
    return 1 + math.ceil(2 * host_s * 1e3 / start.elapsed_time(stop))
