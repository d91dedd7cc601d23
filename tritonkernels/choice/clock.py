"""GPU time: events around a run, with L2 flushed before it and the host's preparation hidden behind the flush."""

import functools
import math
import time

import torch

from ..target import Target


class GpuClock:
    """Events and the cache flush of one GPU, on its current stream."""

    now = staticmethod(time.perf_counter)  # the host's, in seconds

    def __init__(self, device):
        self._device = device
        self.l2_bytes = Target.live(device).l2_bytes
        self._other_data = torch.zeros(2 * self.l2_bytes // 4, dtype=torch.int32, device=device)
        self._largest = torch.empty((), dtype=torch.int32, device=device)
        self._captures = torch.cuda.Stream(device)

    def flush(self):
        torch.amax(self._other_data, 0, out=self._largest)

    def event(self):
        """An event, already recorded: has .query() and .elapsed_time(later)."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event

    def synchronize(self):
        torch.cuda.synchronize(self._device)

    def waits(self, call):
        """Whether the call, tried once, waits for the GPU. A graph cannot capture it then, and a capture that fails may leave
        torch's allocator and random numbers unusable: a caller's program is spared the attempt."""
        before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("error")
        try:
            call()
        except RuntimeError:
            return True
        finally:
            torch.cuda.set_sync_debug_mode(before)
        return False

    def replay(self, call):
        """A function that repeats the GPU work of the call; None where a graph cannot capture it. It keeps the call's tensors
        alive: a graph keeps only those that were made while it was captured.

        Unlike torch.cuda.graph, this leaves the allocator its memory: to return it takes longer than most captures."""
        graph = torch.cuda.CUDAGraph()
        self.synchronize()
        try:
            with torch.cuda.stream(self._captures):
                graph.capture_begin()
                try:
                    call()
                finally:
                    graph.capture_end()
        except RuntimeError:  # for instance because it waits for the GPU
            self.synchronize()
            return None
        return functools.partial(_replay, graph, call)


def _replay(graph, _call):
    graph.replay()


def sample(clock, run, flushes, warm=False):
    """(milliseconds of GPU time, whether they may include host time) of one run; if `warm`, the same run precedes it."""
    for _ in range(flushes):
        clock.flush()
    if warm:
        run()
    start = clock.event()
    run()
    stop = clock.event()
    exposed = start.query()  # the GPU is past `start` already: it may have waited for the host
    clock.synchronize()
    return start.elapsed_time(stop), exposed


def flushes_to_hide(runs, clock):
    """How many flushes keep the GPU busy for twice the host time of the slowest run."""
    host_s = 0.0
    for run in runs:
        clock.synchronize()
        started = clock.now()
        run()
        host_s = max(host_s, clock.now() - started)
    clock.flush()
    start = clock.event()
    clock.flush()
    stop = clock.event()
    clock.synchronize()
    return 1 + math.ceil(2 * host_s * 1e3 / start.elapsed_time(stop))
