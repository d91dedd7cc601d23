"""Times of contenders on a GPU, interleaved: the GPU time of a call and, separately, its host time.

Every round runs every contender once, in a newly shuffled order, so that drifting clocks and temperatures affect all equally;
very slow ones sit out after some rounds.
A run replays a CUDA graph of one or more calls of a contender, or makes the calls where they cannot be captured; the time is
divided by their number. Before each run L2 is flushed by reading other data: written data would be written back to memory
during the run and slow it down. The flush also keeps the GPU busy while the host prepares the launch, so that the time between
the two events is GPU time, not Python's. A run where the host was too late is left out, unless most are.

The two events take 2 to 3 us. Calls of less than SHORT_MS are therefore timed in a row, each on operands of its own, which
the flush has evicted: the run is long enough for the events to be a small part.

After the rounds each contender runs once more, the very path that was timed, so that its result can be checked: the check
comes right behind it on the stream, before anything waits for the GPU, as whoever uses the result next would.
"""

import functools
import random
import statistics
from dataclasses import dataclass

from tritonkernels.choice.clock import GpuClock, flushes_to_hide, sample

__all__ = ["GpuClock", "Timing", "interleaved", "summary"]

WARM_UPS = 5  # compilation, handles, cuDNN's search, clocks
ROUNDS = (30, 200)  # least, most
BUDGET_S = 0.5  # of a case, after the least number of rounds
OWN_S = 0.5  # of a contender, which then sits out
KEPT = 10  # rounds are enough for one that sits out, and without host time to leave those with it out
CALLS = (5, 50)  # for the median host time, least and most; the GPU's queue holds more, so that no call waits for it
CALLS_S = 0.05  # of GPU time for them, after the least
SHORT_MS = 0.02  # calls below this are timed in a row
ROW_MS = 0.5  # for about so long
LEAST_MS = 0.001  # no kernel takes less
PROBES = 3  # samples that say how long a call takes


@dataclass(frozen=True)
class Timing:
    median_ms: float  # this and the next two: GPU time
    p20_ms: float
    p80_ms: float
    rounds: int  # that these are of
    left_out: int  # rounds that may include host time
    exposed: float  # the share of `rounds` that may include host time; 0 unless too few did not
    call_ms: float  # median host time of a call, until it returns
    replayed: bool  # a CUDA graph was timed
    calls: int  # in a run


def in_a_row(runs, clock):
    """{name: how many calls a run should have} of {name: call}: 1 each unless the fastest is short."""
    took = {name: _probe(call, clock) for name, call in runs.items()}
    if min(took.values()) >= SHORT_MS:
        return dict.fromkeys(runs, 1)
    return {name: max(1, round(ROW_MS / max(milliseconds, LEAST_MS))) for name, milliseconds in took.items()}


def _probe(call, clock):
    """About how many milliseconds the call takes on the GPU."""
    for _ in range(WARM_UPS):
        call()
    run = clock.replay(call) or call
    flushes = flushes_to_hide([run], clock)
    return min(sample(clock, run, flushes)[0] for _ in range(PROBES))


def interleaved(runs, clock, seed, warm=False, check=lambda name, again: None):
    """{name: Timing} of runs, {name: (reset, calls)}. reset() and, if `warm`, the same calls precede the timed calls.

    At last, check(name, again) of each: again(before, after) repeats the timed run between the two and returns after()'s value.
    """
    call_ms = {name: _host_ms(calls[0], clock) for name, (_, calls) in runs.items()}
    batches = {name: functools.partial(_do, calls) for name, (_, calls) in runs.items()}
    replays = {name: clock.replay(calls) for name, calls in batches.items()}
    timed = {name: replays[name] or calls for name, calls in batches.items()}
    flushes = flushes_to_hide(timed.values(), clock)
    shuffled, samples, own_s = random.Random(seed), {name: [] for name in runs}, dict.fromkeys(runs, 0.0)
    started = clock.now()
    for done in range(ROUNDS[1]):
        if done >= ROUNDS[0] and clock.now() - started > BUDGET_S:
            break
        for name in shuffled.sample(list(runs), len(runs)):
            if own_s[name] > OWN_S and len(samples[name]) >= KEPT:
                continue
            reset, calls = runs[name]
            reset()
            milliseconds, late = sample(clock, timed[name], flushes, warm)
            own_s[name] += milliseconds / 1e3
            samples[name].append((milliseconds / len(calls), late))
    for name in runs:
        check(name, functools.partial(_again, timed[name], clock, flushes))
    return {
        name: summary(samples[name], call_ms[name], replays[name] is not None, len(calls)) for name, (_, calls) in runs.items()
    }


def _again(run, clock, flushes, before, after):
    """The flushes keep the GPU busy until all is enqueued, so work that does not wait for its stream comes before before()."""
    for _ in range(flushes):
        clock.flush()
    before()
    run()
    result = after()
    clock.synchronize()
    return result


def _do(calls):
    for call in calls:
        call()


def summary(samples, call_ms, replayed, calls):
    """The Timing of (milliseconds, whether they may include host time) of each round."""
    kept = [milliseconds for milliseconds, late in samples if not late]
    left_out, exposed = len(samples) - len(kept), 0.0
    if len(kept) < KEPT and left_out:
        kept, left_out, exposed = [milliseconds for milliseconds, _ in samples], 0, left_out / len(samples)
    p20, _, _, p80 = statistics.quantiles(kept, n=5, method="inclusive")
    return Timing(statistics.median(kept), p20, p80, len(kept), left_out, exposed, call_ms, replayed, calls)


def _host_ms(call, clock):
    """The median host time of a call, after warm-ups."""
    started = clock.now()
    for _ in range(WARM_UPS):
        call()
    clock.synchronize()
    each_s = (clock.now() - started) / WARM_UPS
    times = []
    for _ in range(max(CALLS[0], min(CALLS[1], int(CALLS_S / each_s)))):
        started = clock.now()
        call()
        times.append(1e3 * (clock.now() - started))
    clock.synchronize()
    return statistics.median(times)
