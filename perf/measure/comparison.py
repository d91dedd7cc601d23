"""Runs the contenders on a case and checks each; on a GPU, the correct ones are timed together and checked again."""

import dataclasses
import functools
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tritonkernels.analysis import roofline
from tritonkernels.errors import UnsupportedError
from tritonkernels.problem import Problem
from tritonkernels.target import Target

from . import baselines, contenders, timing
from .check import Checker, Finding, Output
from .environment import environment, sm_clock_mhz
from .records import Record

COPY = "copy"  # timed with the contenders: the bandwidth that a copy reaches
RESIDENT_CALLS = 20  # in a timed run, so that the time of the events is a small part


class GpuLost(RuntimeError):
    """A kernel's fault has destroyed the CUDA context: this process can run nothing more on the GPU."""


@dataclass
class Entry:
    """A contender on a case, with everything to run and check it repeatedly."""

    record: Record
    problem: Problem
    output: Output
    on: Callable[..., torch.Tensor]  # the call, given the positional operands
    writes_out: bool
    transform: Callable[[dict], Any]  # a contender's

    def judge(self, checker, computed):
        """Check a result and note the outcome in the record."""
        transform = self.transform(self.record.config)
        self.note(checker.judge(self.problem, self.output, computed, self.writes_out, transform))

    def note(self, finding: Finding):
        self.record.error, self.record.bound = finding.verdict.error, finding.verdict.bound
        self.record.ok, self.record.message = finding.ok, finding.fault


class Comparison:
    """`records` and `refusals` (one line each) of the cases run so far."""

    def __init__(self, suite, seed, designs, device, commit=None):
        self.records, self.refusals = [], []
        self._suite, self._seed, self._designs, self._device = suite, seed, designs, device
        self._environment = environment(device, commit)
        self._clock = timing.GpuClock(device) if device.type == "cuda" else None

    def run(self, case):
        args, kwargs = case.arguments(self._seed, self._device)
        prepared = importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)
        checker = Checker(args, kwargs)
        with baselines.precision(prepared.problem.precision):
            entries = []
            for contender in contenders.contenders(case.op, self._designs):
                entry = self._enter(case, contender, prepared, kwargs)
                if self._first_run(entry, contender, checker, args, kwargs):
                    entries.append(entry)
            if self._clock and entries:
                self._time(case, entries, checker, args)

    def _enter(self, case, contender, prepared, kwargs):
        problem = prepared.problem
        if contender.implementation == "torch":
            problem = dataclasses.replace(problem, precision=baselines.precision_of(problem, self._device))
        target = Target.live(self._device) if self._clock else None
        record = Record(
            suite=self._suite,
            case=case.name,
            seed=self._seed,
            op=case.op,
            problem=problem.describe(),
            implementation=contender.implementation,
            design=contender.design,
            backend=contenders.backend_of(contender.implementation, self._device),
            precision=problem.precision,
            target=target.name if target else contenders.CPU_BACKENDS[contender.implementation],
            bound_by=roofline.limits(problem, target)["bound_by"] if target else None,
            environment=self._environment,
        )
        output = Output(prepared.result)
        on = functools.partial(contender.call, out=output.tensor, **kwargs)
        return Entry(record, problem, output, on, contender.writes_out, contender.transform)

    def _first_run(self, entry, contender, checker, args, kwargs):
        """Whether the contender's result is correct. Its record is kept unless it refuses the case."""
        record = entry.record
        try:
            record.config = contender.explain(*args, **kwargs)["config"]
            entry.judge(checker, entry.on(*args))
        except UnsupportedError as refusal:
            self.refusals.append(f"{record.op} {record.case}, {record.implementation} {record.design}: {refusal}")
            return False
        except Exception as error:  # a contender's error is the failure of its row, not of the comparison
            self._failed([entry], error)
        self.records.append(record)
        self._or_lost(checker)
        return record.ok

    def _time(self, case, entries, checker, args):
        try:
            operands = self._operands(case, args)
            runs = {i: (e.output.poison, [functools.partial(e.on, *own) for own in operands]) for i, e in enumerate(entries)}
            if case.cache == "rotating":
                runs[COPY] = (lambda: None, self._copies(entries[0].problem.bytes, len(operands)))
            timings = timing.interleaved(runs, self._clock, self._seed, warm=case.cache == "resident")
            clock_mhz = sm_clock_mhz(self._device)
            copied = timings.get(COPY)
            for i, entry in enumerate(entries):
                entry.judge(checker, entry.output.tensor if entry.writes_out else entry.on(*args))
                if entry.record.ok:
                    _speed(entry, timings[i], clock_mhz)
                    entry.record.copy_gbps = copied and 1e-6 * entry.problem.bytes / copied.median_ms
        except Exception as error:
            self._failed(entries, error)
        self._or_lost(checker)
        torch_ones = [e.record for e in entries if e.record.implementation == "torch" and e.record.ok]
        for record in (e.record for e in entries if e.record.ok):
            fair = [t.median_ms for t in torch_ones if t.precision == baselines.yardstick(record.precision)]
            record.ratio_to_torch = min(fair) / record.median_ms if fair else None

    def _operands(self, case, args):
        """The operands of each call of a timed run, as the case's `cache` says."""
        if case.cache == "rotating":
            size = sum(t.numel() * t.element_size() for t in args)
            return [args, *([t.clone() for t in args] for _ in range(math.ceil(2 * self._clock.l2_bytes / max(1, size))))]
        return [args] * (RESIDENT_CALLS if case.cache == "resident" else 1)

    def _copies(self, size, count):
        """`count` calls that each copy other memory, reading and writing `size` bytes in all.

        They are an elementwise kernel: `copy_` is the driver's copy, which reaches only two thirds of its speed at some sizes.
        """
        halves = [torch.ones(2, max(1, size // 8), dtype=torch.int32, device=self._device) for _ in range(count)]
        return [functools.partial(torch.neg, source, out=to) for source, to in halves]

    def _failed(self, entries, error):
        for entry in entries:
            entry.record.ok, entry.record.message = False, f"{type(error).__name__}: {error}"

    def _or_lost(self, checker):
        """Restore operands and memory after a failed run, so that the next contender starts clean."""
        try:
            checker.restore()
        except RuntimeError as error:
            raise GpuLost(str(error)) from error


def _speed(entry, timing, clock_mhz):
    record, seconds = entry.record, timing.median_ms / 1e3
    for field in dataclasses.fields(timing):
        setattr(record, field.name, getattr(timing, field.name))
    record.tflops = entry.problem.flops / seconds / 1e12
    record.gbps = entry.problem.bytes / seconds / 1e9
    record.sm_clock_mhz = clock_mhz
