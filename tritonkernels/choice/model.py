"""The model of time: a Work's seconds on a Target, from its figures and from what the design sustains of them.

A kernel takes a launch, four things that overlap in part, and an epilogue:

    arithmetic = blocks of the busiest SM * FLOPs of a block / what an SM computes
    cache      = blocks of the busiest SM * bytes of a block / what an SM fetches from L2
    memory     = bytes / bandwidth of DRAM
    latency    = waves * steps of a block * latency of DRAM
    epilogue   = blocks of the busiest SM * FLOPs of a block after its sums / what the CUDA cores of an SM compute

The busiest SM has one block more than others where the last wave is not full; a wave is what all SMs hold at once (occupancy).
Its CUDA cores compute at full speed with BUSY warps or more, which is two for each scheduler.
A cluster's blocks are of one GPC, whose SMs may be no multiple of them.
They are joined as (a^1.5 + b^1.5 + ...)^(1/1.5), between the longest alone, which would be perfect overlap, and their sum.
Whatever was fitted and learned, nobody is given a time below the problem's roofline (analysis/roofline.py), as no record is.

What a design sustains of the peak, of the bandwidths and of the latency is data (Sustained), fitted to records of a GPU by
`python -m perf fit`, as are factors of its configs and of classes of problems, which launches have none of. They are shares of
the GPU's own figures: fitted to the records of all GPUs of an architecture together, those of Hopper, they serve every GPU.

Shares are of figures as data sheets have them. A user's measured figures (calibration.py), which no kernel exceeds, are brought
to that scale by what the same kernels measure on an H200: a GPU on which they copy half as fast has half its bandwidth.
"""

import dataclasses
import functools
import json
from itertools import chain
from typing import Any, NamedTuple

import numpy

from ..analysis.occupancy import occupancy
from ..calibration import FIELDS, by_gpu
from ..target import PLANES, SAME_RATE, Target
from .efficiency import PARTS, REFERENCE, TABLES, Sustained
from .work import Work

UNITS = (*Target.named(REFERENCE).peaks, "b1", *SAME_RATE, *PLANES)
IN_CLUSTERS = 10 / 11  # of the SMs, those that clusters of 4 or 8 reach: 30 and 15 of them on an H200's 132, as CUDA says
BUSY = 8  # of 4, 6 and 8 what chose best in cross-validation on H100 and H200
OVERLAP = 1.5  # the exponent that joins the parts: of 1 to 4 what chose best in cross-validation on the H200


class Rates(NamedTuple):
    """The figures of a Target without gaps, for one SM where all blocks share them: FLOP/s by unit, bytes of L2, and of the
    whole GPU's DRAM a second, and the seconds of a trip to DRAM and of a launch. `held` keeps what blocks_per_sm found."""

    target: Target
    sms: int
    flops: dict[str, float]
    l2: float
    dram: float
    latency: float
    launch: float
    held: dict[tuple[int, int, int], int]


class Estimate(NamedTuple):
    """Predicted seconds of a call, those of its kernels' PARTS, of which none takes longer as they overlap, and the part that
    takes most."""

    seconds: float
    compute_s: float
    cache_s: float
    memory_s: float
    latency_s: float
    epilogue_s: float
    launch_s: float
    bound_by: str

    def taking(self, seconds, compute, memory):
        """The same call in so many seconds, and at least as many as its limits, those of `compute` and `memory`."""
        least = self._replace(compute_s=max(self.compute_s, compute), memory_s=max(self.memory_s, memory))
        seconds = max(seconds, compute, memory)
        return Estimate(seconds, *(min(part, seconds) for part in least[1:-1]), self.bound_by)


EPILOGUE = PARTS.index("epilogue")  # those before it overlap


@functools.cache
def rates(target):
    """The Rates of a GPU, by its measured figures if it has any; what is unknown is in proportion to SMs of the H200's."""
    known = Target.named(REFERENCE)
    if target.measured:
        target = dataclasses.replace(target, **_as_on_a_data_sheet(target, known))
    share = target.sms / known.sms
    peaks = {unit: rate * share for unit, rate in known.peaks.items()} | target.peaks
    dram = target.dram_bandwidth or known.dram_bandwidth * share
    l2 = target.l2_bandwidth or max(2 * dram, known.l2_bandwidth * share)
    target = dataclasses.replace(target, peaks=peaks, dram_bandwidth=dram, l2_bandwidth=l2)
    per_sm = {unit: peak / target.sms for unit in UNITS if (peak := target.peak(unit))}
    return Rates(target, target.sms, per_sm, l2 / target.sms, dram, target.latency, target.launch, {})


def _as_on_a_data_sheet(target, known):
    """The fields of a Target that its user has measured: its ratio to the reference's measured figure, times that one's own."""
    figures, on_known = target.measured.figures, _measured_on_the_reference()
    own = {name: getattr(known, name) for name in FIELDS} | known.peaks
    scaled = {name: value * own[name] / on_known.get(name, own[name]) for name, value in figures.items()}
    peaks = target.peaks | {name: scaled[name] for name in target.measured.peaks}
    return {"peaks": peaks} | {name: scaled[name] for name in FIELDS if name in scaled}


@functools.cache
def _measured_on_the_reference():
    """The figures that `python -m perf calibrate` has measured there; empty if it has not been run."""
    found = by_gpu(json.loads((TABLES / REFERENCE / "calibration.json").read_text())["entries"])
    return next(iter(found.values())).figures if found else {}


def blocks_per_sm(rate, threads, registers, shared):
    """How many blocks of such resources an SM holds, at least one: registers are an estimate."""
    held = rate.held[threads, registers, shared] = max(1, occupancy(rate.target, threads, registers, shared).blocks)
    return held


class Contender(NamedTuple):
    """A config of a design, which may be chosen for a problem.

    design   its name
    works    of the kernels of a call, one after the other
    factors  of the kernels' time, and of their epilogues besides: of the config and of the problem's classes
    """

    design: str
    config: Any
    works: tuple[Work, ...]
    sustained: Sustained
    factors: tuple[float, float] = (1.0, 1.0)

    def main(self):
        """The index of the main kernel."""
        return max(range(len(self.works)), key=lambda at: self.works[at].weight())


class Predicted(NamedTuple):
    """What the model says of calls.

    seconds  (calls,)
    first    (calls,): of all kernels the index of each call's first one
    counts   (COUNTS, kernels): their Work
    full     (PARTS, kernels): the seconds of the PARTS of each kernel at the target's full figures
    parts    (PARTS, kernels): the same at what the designs sustain
    """

    seconds: numpy.ndarray
    first: numpy.ndarray
    counts: numpy.ndarray
    full: numpy.ndarray
    parts: numpy.ndarray


def predicted(contenders, rate):
    """What is Predicted of the contenders' calls on a target of these Rates."""
    works = [contender.works for contender in contenders]
    numbers = numpy.array([*map(len, works)])
    first = numbers.cumsum() - numbers
    figures = numpy.array([(*own.sustained.shares, *own.factors) for own in contenders]).T.repeat(numbers, axis=1)
    *shares, launch, next_launch, factor, after = figures
    next_launch[first] = launch[first]
    counts, full = counts_and_parts([*chain.from_iterable(works)], rate)
    parts = full / (*shares, next_launch)
    parts[:-1] *= factor
    parts[EPILOGUE] *= after
    seconds = overlapped(*parts[:EPILOGUE]) + parts[EPILOGUE] + parts[-1]
    return Predicted(numpy.add.reduceat(seconds, first), first, counts, full, parts)


def estimates(predicted):
    """The Estimates of what is Predicted."""
    parts = numpy.add.reduceat(predicted.parts, predicted.first, axis=1)
    bounds = parts.argmax(axis=0).tolist()
    return [Estimate(*values, PARTS[bound]) for *values, bound in zip(predicted.seconds.tolist(), *parts.tolist(), bounds)]


def emulated_cost(work):
    """A measure of the time that the interpreter or the emulation takes: a kernel, the steps of its blocks, its arithmetic."""
    return 100 + work.blocks * (20 * work.steps + work.flops / 1e5)


def overlapped(compute, cache, memory, latency):
    """The seconds of kernels of which these PARTS take so long, without their epilogues and launches."""
    return (compute**OVERLAP + cache**OVERLAP + memory**OVERLAP + latency**OVERLAP) ** (1 / OVERLAP)


def reached_by(sms, cluster):
    """How many of the SMs clusters of such a size reach."""
    return sms if cluster <= 2 else int(sms * IN_CLUSTERS)


COUNTS = tuple(name for name in Work._fields if name != "unit")


def parts_of(works, rate):
    """(PARTS, works): the seconds of each of the PARTS of kernels at the target's full figures."""
    return counts_and_parts(works, rate)[1]


def counts_and_parts(works, rate):
    """((COUNTS, works), and parts_of the works)."""
    blocks, threads, flops, units, fetched, dram, steps, registers, shared, epilogue, clusters = zip(*works)
    known, ieee = rate.held, rate.flops["ieee"]
    held = [known.get(each) or blocks_per_sm(rate, *each) for each in zip(threads, registers, shared)]
    peak = [rate.flops.get(unit) or ieee for unit in units]
    reached = [reached_by(rate.sms, cluster) for cluster in clusters]
    wanted = [BUSY if unit == "ieee" else 0 for unit in units]  # warps
    counted = blocks, threads, flops, fetched, dram, steps, registers, shared, epilogue, clusters
    rows = numpy.array([*counted, held, peak, reached, wanted], float)
    blocks, threads, flops, fetched, dram, steps, _, _, epilogue, _, held, peak, reached, wanted = rows
    full = numpy.floor(blocks / (reached * held))
    rest = blocks - full * reached * held
    busiest = full * held + numpy.ceil(rest / reached)
    warps = numpy.minimum(held, busiest) * threads / 32
    return rows[: len(COUNTS)], numpy.array(
        [
            numpy.maximum(1.0, wanted / numpy.maximum(warps, 1.0)) * busiest * flops / peak,
            busiest * fetched / rate.l2,
            dram / rate.dram,
            (full + (rest > 0)) * steps * rate.latency,
            busiest * epilogue / ieee,
            numpy.full(len(works), rate.launch),
        ]
    )
