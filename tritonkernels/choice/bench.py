"""Builds, checks and times candidates for one call; the tuner decides which."""

import contextlib
import functools
import json
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ..design import as_dict
from ..errors import TuningError
from .builders import in_a_line
from .clock import flushes_to_hide, sample

SAMPLES = 5  # of a trial
HOPELESS = 2.0  # times as slow as the first candidate: few samples are enough
FEW = 2  # of which one may have been disturbed
ROUNDS = (10, 200)  # of a final: least, unless its time is up, and most
LEAST = 3  # rounds of a final whose time is up
CERTAIN = 0.005  # relative standard error of every median at which a final ends
NOISE = 3.0  # standard errors, and
GAIN = 0.01  # this part of the time, by which a faster one must be ahead
ATTEMPTS = 5  # at a sample without host time


class UnfitError(Exception):
    """A candidate that cannot win, and why."""


class WrongError(UnfitError):
    """Its result is wrong."""


class GpuLostError(TuningError):
    """A kernel's fault has destroyed the CUDA context: this process can run nothing more on the GPU."""


@dataclass(frozen=True, eq=False)
class Candidate:
    design: Any
    config: Any

    @functools.cached_property
    def numbers(self):
        return as_dict(self.config)

    @functools.cached_property
    def key(self):
        return self.design.name, json.dumps(self.numbers)

    def __str__(self):
        return " ".join((self.design.name, *(f"{name}={value}" for name, value in self.numbers.items())))


@dataclass(eq=False)
class Contender:
    """A candidate that has computed the call right; run() repeats its GPU work."""

    candidate: Candidate
    run: Callable[[], Any]
    times: list = field(default_factory=list)  # milliseconds, in a final

    @property
    def ms(self):
        return statistics.median(self.times)

    @property
    def standard_error(self):
        """The standard error of the median, estimated from the median of deviations, which outliers do not move."""
        deviation = 1.4826 * statistics.median(abs(t - self.ms) for t in self.times)
        return math.sqrt(math.pi / 2) * deviation / math.sqrt(len(self.times))

    def beats(self, other):
        noise = NOISE * math.hypot(self.standard_error, other.standard_error)
        return other.ms - self.ms > max(noise, GAIN * other.ms)


def race(contenders, one_round, clock, until):
    """Fill in their times, by rounds that each add one, until the medians are certain or the time is up."""
    for contender in contenders:
        contender.times = []
    for done in range(ROUNDS[1]):
        if done >= LEAST and clock.now() >= until:
            break
        if done >= ROUNDS[0] and all(c.standard_error <= CERTAIN * c.ms for c in contenders):
            break
        one_round(contenders)


class Bench:
    """`expected` judges the call's result. Kernels that are not built yet are built when they first run."""

    def __init__(self, library, call, expected, clock):
        self._library, self._call, self._expected, self._clock = library, call, expected, clock
        self._flushes, self._shuffled = 1, random.Random(0)

    def contender(self, candidate):
        """The candidate, ready to be timed; or UnfitError."""
        with self._faults_of(candidate):
            run = functools.partial(self._library.run, self._call, candidate.design.name, candidate.config)
            self._check(run)
            return Contender(candidate, self.repeated(run))

    def repeated(self, run):
        """A function that repeats the GPU work of run(), which has run before; from now on flushes hide its host time."""
        run = self._clock.replay(run) or run
        self._flushes = max(self._flushes, flushes_to_hide([run], self._clock))
        return run

    def is_still_right(self, contender):
        """True, or UnfitError."""
        with self._faults_of(contender.candidate):
            self._check(contender.run)
        return True

    def _check(self, run):
        result = self._call.result
        result.fill_(math.nan if result.is_floating_point() else torch.iinfo(result.dtype).min)
        run()
        self._clock.synchronize()
        verdict = self._expected.judge(result)
        if not verdict.ok:
            raise WrongError(f"error {verdict.error:.3g} above the bound {verdict.bound:.3g}")

    @contextlib.contextmanager
    def _faults_of(self, candidate):
        try:
            yield
        except UnfitError:
            raise
        except Exception as error:  # of whatever kind, it is the candidate's
            try:
                self._clock.synchronize()
            except RuntimeError as lost:
                message = f"{candidate} has destroyed the CUDA context ({in_a_line(lost)}). What was found before is kept: "
                raise GpuLostError(message + "tune again in a new process, it goes on from there.") from lost
            raise UnfitError(in_a_line(error)) from error

    def trial(self, contender, first):
        """The contender's time relative to the first's, timed in turns; or UnfitError."""
        if contender is first:
            return 1.0
        its, ours = [], []
        with self._faults_of(contender.candidate):
            while len(ours) < FEW or (len(ours) < SAMPLES and min(ours) < HOPELESS * min(its)):
                its.append(self._sample(first))
                ours.append(self._sample(contender))
        return statistics.median(ours) / statistics.median(its)

    def final(self, contenders, until):
        """Fill in their times, by rounds in random order."""
        race(contenders, self.round, self._clock, until)

    def round(self, contenders):
        """Add a sample to the times of each, in random order."""
        for contender in self._shuffled.sample(contenders, len(contenders)):
            contender.times.append(self._sample(contender))

    def _sample(self, contender):
        for _ in range(ATTEMPTS):
            milliseconds, exposed = sample(self._clock, contender.run, self._flushes)
            if not exposed:
                break
        return milliseconds
