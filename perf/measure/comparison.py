"""Runs the contenders on a case and checks each; on a GPU, the correct ones are timed together and what was timed is checked.

A timed run has operands of new values, so that no result of an earlier one is right. docs/measuring.md says what each step is
good for.
"""

import dataclasses
import functools
import importlib
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tritonkernels.analysis import roofline
from tritonkernels.errors import UnsupportedError
from tritonkernels.problem import Problem
from tritonkernels.target import Target

from . import baselines, contenders, profiled, tampering, timing, ways
from .cases import placed
from .check import SUMMED, Checker, Finding, Output, thin_out
from .environment import environment
from .monitor import Monitor
from .records import Record

COPY = "copy"  # timed with the contenders: the bandwidth that a copy reaches
AGAIN = "again"  # torch's first function once more: what it differs from itself is noise
RESIDENT_CALLS = 20  # in a timed run, so that the time of the events is a small part
ROW_BYTES = 40  # times L2 at most, of operands for calls in a row
PAUSE_S = 2.0  # after a case that the GPU was throttled in, before it is timed once more
IMPOSSIBLE = 0.8  # of the roofline's least time: clocks may exceed those of the data sheet
COARSEST = 2.0**-4  # the unit roundoff of fp8: an error above it is that of no arithmetic, but of a wrong result


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
    transform: Callable[[dict], Any]  # this and the next are a contender's
    stepwise: bool = False
    computed: torch.Tensor | None = None  # what the last call returned

    def run(self, *args):
        self.computed = self.on(*args)

    def poison(self):
        self.output.poison(*(() if self.writes_out else (self.computed,)))

    def snapshot(self):
        """The Output and the result as the current stream has them now."""
        output = self.output.copy()
        return output, output.tensor if self.writes_out else self.computed.clone()

    def judge(self, checker, output, computed, **options):
        """The Finding on a result."""
        options |= {"transform": self.transform(self.record.config), "stepwise": self.stepwise}
        return checker.judge(self.problem, output, computed, self.writes_out, **options)

    def graded(self, finding: Finding, limit=COARSEST):
        """The Finding, without its fault where a peer is merely of a smaller precision: from now on its row is of that one."""
        if not (finding.inexact and self.record.is_peer and self.problem.dtype.is_floating_point):
            return finding
        if finding.smaller and self.record.precision == self.problem.precision:  # what it once exceeded, it does not regain
            self.problem, verdict = finding.smaller
            self.record.precision = self.problem.precision
            return Finding(verdict, None)
        if finding.verdict.error > limit:
            return finding
        self.record.precision = f"below {self.problem.precision}"
        return Finding(finding.verdict, None)

    def note(self, finding: Finding):
        self.record.error, self.record.bound = finding.verdict.error, finding.verdict.bound
        self.record.ok, self.record.message = finding.ok, finding.fault

    def fail(self, message):
        self.record.ok, self.record.message = False, message


class Comparison:
    """`records` of the cases run so far, and `refusals`: (Record, why). `peers` is a peers.Entrants, `monitor` a Monitor, `own`
    a user's own.Functions. `thorough`: torch in all of its ways, and the kernels of each call by name."""

    def __init__(
        self,
        suite,
        seed,
        designs,
        device,
        commit=None,
        implementations=None,
        peers=None,
        monitor=None,
        own=(),
        thorough=False,
    ):
        self.records, self.refusals, self._own = [], [], [function.contender for function in own]
        self._suite, self._seed, self._device = suite, seed, device
        self._wanted, self._peers, self._monitor = (designs, implementations), peers, monitor or Monitor(device)
        self._thorough, self._ways = thorough, ways.WAYS if thorough else baselines.BASELINES
        self._environment = environment(device, commit)
        self._clock = timing.GpuClock(device) if device.type == "cuda" else None
        self._watch, self._drawn = tampering.Watch(device), 0

    def run(self, case):
        args, kwargs = case.arguments(self._seed, self._device, drawn_on=self._device)
        prepared = importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)
        checker = Checker(args, kwargs)
        with baselines.precision(prepared.problem.precision):
            entries, wrong = [], []
            peers = self._peers.of(case, prepared.problem, args, kwargs) if self._peers else ()
            for contender in itertools.chain(self._designs(case), self._own, peers):
                entry = self._enter(case, contender, prepared, kwargs)
                if self._first_run(case, entry, contender, checker, args, kwargs):
                    entries.append(entry)
                elif entry.computed is not None and contender.implementation == "torch":
                    wrong.append(entry)
            if self._clock and entries:
                self._time(case, entries, checker, args, kwargs)
            if self._clock and self._thorough:
                for entry in (*entries, *wrong):
                    entry.record.kernels = profiled.kernels(functools.partial(entry.run, *args))

    def _designs(self, case):
        return contenders.contenders(case.op, *self._wanted, case.chosen and self._wanted[0] is None, self._ways)

    def _enter(self, case, contender, prepared, kwargs):
        problem = prepared.problem
        if contender.implementation in ("torch", "peer"):
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
        return Entry(record, problem, output, on, contender.writes_out, contender.transform, contender.stepwise)

    def _first_run(self, case, entry, contender, checker, args, kwargs):
        """Whether the contender's result is correct. Its record is kept unless it refuses the case."""
        record = entry.record
        try:
            explained = contender.explain(*args, **kwargs)
            record.config, record.design = explained["config"], explained.get("design", contender.design)
            entry.run(*args)
            entry.note(entry.graded(entry.judge(checker, entry.output, entry.computed)))
            if record.ok and contender.implementation == contenders.OWN and not self._clock:
                self._check_again(case, entry, checker, args, kwargs)
            entry.output.poison()  # so that nobody can copy it
        except UnsupportedError as refusal:
            if contender.implementation != contenders.OWN:
                self.refusals.append((record, refusal.reason))
                return False
            entry.fail(_in_words(refusal))  # what one wants to know of one's own kernel
        except Exception as error:  # a contender's error is the failure of its row, not of the comparison
            entry.fail(_in_words(error))
        if tampered := self._watch.undo():
            entry.fail(tampered)
        self.records.append(record)
        self._or_lost(checker)
        return record.ok

    def _check_again(self, case, entry, first, args, kwargs):
        """Judge a call of other values, where none is timed: a user's kernel has no tests of its own here."""
        thin = _is_probed(entry)
        self._renew(case, [args], kwargs, thin)
        entry.poison()
        entry.run(*args)
        finding = entry.judge(Checker(args, kwargs), entry.output, entry.computed, terms=1 if thin else None)
        if not finding.ok:
            how = f" with a single product of precision {entry.problem.precision} in each element" if thin else ""
            fault = f"right at first, wrong of other values{how}: {_stale(entry, [], first, entry.computed) or finding.fault}"
            entry.note(dataclasses.replace(finding, fault=fault))

    def _time(self, case, entries, checker, args, kwargs):
        try:
            counts = self._calls(case, entries, args)
            copies = 0 if case.cache == "resident" else max(counts) - 1
            operands = [args, *([placed(t, self._device, copy=True) for t in args] for _ in range(copies))]
            for entry in entries if copies else ():
                if entry.record.implementation == "torch":  # what it keeps of operands is made now, not in each timed run
                    for copied in operands[1:]:
                        entry.run(*copied)
            runs = self._runs(case, entries, operands, counts, kwargs)

            def check(i, again):
                if i not in (COPY, AGAIN):
                    last = operands[(counts[i] - 1) % len(operands)]
                    renew = functools.partial(self._renew, case, operands, kwargs)
                    self._check_timed(entries[i], entries, checker, last, kwargs, renew, again)

            timings, state = self._timed(runs, case.cache == "resident", check)
            if state.throttled:
                time.sleep(PAUSE_S)
                timings, state = self._timed(runs, case.cache == "resident", check)
            copied, tampered, target = timings.get(COPY), self._watch.undo(), Target.live(self._device)
            for i, entry in enumerate(entries):
                if tampered:
                    entry.fail(f"while this and others were timed, one of them tampered: {tampered}")
                elif entry.record.ok and (reason := too_fast(entry, target, case.cache, timings[i].median_ms)):
                    entry.fail(reason)
                if entry.record.ok:
                    _speed(entry, timings[i], state)
                    entry.record.copy_gbps = copied and 1e-6 * entry.problem.bytes / copied.median_ms
            if (first := _first_of_torch(entries)) is not None and entries[first].record.ok:
                entries[first].record.again_ms = timings[AGAIN].median_ms
        except Exception as error:
            for entry in entries:
                entry.fail(_in_words(error))
        self._or_lost(checker)
        torch_ones = [e.record for e in entries if e.record.implementation == "torch" and e.record.ok]
        for record in (e.record for e in entries if e.record.ok):
            fair = [t.median_ms for t in torch_ones if t.precision == baselines.yardstick(record.precision)]
            record.ratio_to_torch = min(fair) / record.median_ms if fair else None

    def _calls(self, case, entries, args):
        """How many calls a timed run of each entry has."""
        if case.cache == "resident":
            return [RESIDENT_CALLS] * len(entries)
        size = max(1, sum(t.numel() * t.element_size() for t in args if isinstance(t, torch.Tensor)))
        if case.cache == "rotating":
            return [1 + math.ceil(2 * self._clock.l2_bytes / size)] * len(entries)
        most = max(1, ROW_BYTES * self._clock.l2_bytes // size)
        counts = timing.in_a_row({i: functools.partial(entry.run, *args) for i, entry in enumerate(entries)}, self._clock)
        return [min(most, count) for count in counts.values()]

    def _runs(self, case, entries, operands, counts, kwargs):
        """{number of the entry, AGAIN or COPY: (what to do before a timed run, its calls)}"""

        def run(entry, n):
            calls = [functools.partial(entry.run, *operands[j % len(operands)]) for j in range(n)]
            return functools.partial(reset, entry), calls

        def reset(entry):
            self._renew(case, operands, kwargs)
            entry.poison()

        runs = {i: run(entry, n) for i, (entry, n) in enumerate(zip(entries, counts))}
        if (first := _first_of_torch(entries)) is not None:
            runs[AGAIN] = run(dataclasses.replace(entries[first], computed=None), counts[first])
        if case.cache == "rotating":
            runs[COPY] = (lambda: None, self._copies(entries[0].problem.bytes, len(operands)))
        return runs

    def _timed(self, runs, warm, check):
        """The timings, and the GPU's State meanwhile."""
        started = time.perf_counter()
        timings = timing.interleaved(runs, self._clock, self._seed, warm, check)
        return timings, self._monitor.since(started)

    def _renew(self, case, operands, kwargs, thin=False):
        """Give the operands other values, in place; if `thin`, such that each element of the result is a single product."""
        self._drawn += 1
        fresh, named = case.arguments(self._seed + self._drawn, self._device, drawn_on=self._device)
        if thin:
            thin_out(case.op, fresh)
        for copies, value in zip((*zip(*operands), *((own,) for own in kwargs.values())), (*fresh, *named.values())):
            if isinstance(value, torch.Tensor):
                torch._foreach_copy_(copies, [value] * len(copies))
        baselines.renew()

    def _check_timed(self, entry, entries, first, args, kwargs, renew, again):
        """Judge what the timed path computes of values that it has not seen, as the stream has it right behind the run."""
        renew()
        checker = Checker(args, kwargs)
        entry.snapshot()  # allocates what the next one then has at once
        output, computed = again(entry.poison, entry.snapshot)
        finding = entry.judge(checker, output, computed)
        stale = None if finding.ok else _stale(entry, entries, first, computed)
        finding = finding if stale else entry.graded(finding)
        if not finding.ok:
            fault = f"right when called, wrong when timed: {stale or finding.fault}"
            entry.note(dataclasses.replace(finding, fault=fault))
        elif _is_probed(entry):
            renew(thin=True)
            checker = Checker(args, kwargs)
            finding = entry.judge(checker, *again(entry.poison, entry.snapshot), terms=1)
            finding = entry.graded(finding, math.inf)  # a transform's errors are not small relative to single products
            if not finding.ok:
                fault = f"wrong where each element is a single product of precision {entry.problem.precision}: {finding.fault}"
                entry.note(dataclasses.replace(finding, fault=fault))
        entry.output.poison()

    def _copies(self, size, count):
        """`count` calls that each copy other memory, reading and writing `size` bytes in all.

        They are an elementwise kernel: `copy_` is the driver's copy, which reaches only two thirds of its speed at some sizes.
        """
        halves = [torch.ones(2, max(1, size // 8), dtype=torch.int32, device=self._device) for _ in range(count)]
        return [functools.partial(torch.neg, source, out=to) for source, to in halves]

    def _or_lost(self, checker):
        """Restore operands and memory after a failed run, so that the next contender starts clean."""
        try:
            checker.restore()
        except RuntimeError as error:
            raise GpuLost(str(error)) from error


def too_fast(entry, target, cache, milliseconds):
    """Why a time is impossible; None if it is not."""
    problem, least = entry.problem, {}
    limits = roofline.limits(problem, target)
    if limits["memory_s"] and cache != "resident":
        stays = min(entry.output.tensor.nbytes, target.l2_bytes)  # what is written may stay in L2
        least["reading its operands from DRAM"] = (problem.bytes - stays) / target.dram_bandwidth
    transforms = problem.op.startswith("conv2d")  # Winograd's and Fourier's save multiplications
    coarser = getattr(problem, "accumulate", "") == "fp16" or entry.record.precision != problem.precision  # it may be faster
    if limits["compute_s"] and not transforms and not coarser:
        least["its arithmetic"] = limits["compute_s"]
    slowest = roofline.slowest(least)
    if slowest and milliseconds < 1e3 * IMPOSSIBLE * least[slowest]:
        return f"an impossible time, {1e3 * milliseconds:.3g} us: {slowest} alone takes {1e6 * least[slowest]:.3g} us"
    return None


def _stale(entry, entries, first, computed):
    """Where a wrong result is from, if it is that of other operands."""
    for other in entries:
        if other is not entry and torch.equal(computed, other.output.tensor):
            return f"it gave what {other.record.implementation} {other.record.design} had computed"
    if first.verdict(entry.problem, computed).ok:
        return "it gave the result of its first operands"
    return None


def _first_of_torch(entries):
    """The index of the first entry of torch, or None."""
    return next((i for i, entry in enumerate(entries) if entry.record.implementation == "torch"), None)


def _is_probed(entry):
    """Whether long sums may hide a smaller precision. torch's is set by its switches, and transforms have their own errors."""
    fractions = entry.problem.dtype.is_floating_point and entry.problem.op in SUMMED
    return fractions and entry.record.implementation != "torch" and not entry.transform(entry.record.config)


def _in_words(error):
    return f"{type(error).__name__}: {error}"


def _speed(entry, timing, state):
    record, seconds = entry.record, timing.median_ms / 1e3
    for name, value in (dataclasses.asdict(timing) | state._asdict()).items():
        setattr(record, name, value)
    record.tflops = entry.problem.flops / seconds / 1e12
    record.gbps = entry.problem.bytes / seconds / 1e9
