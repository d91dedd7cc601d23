"""tune(): times what a call may get, and keeps the fastest in the user's tuned table (table.py).

First, kernels are built in other processes (builds.py). When these have ended, the candidates that were built are tried, in the
order of the ranking (bench.py). Each must first compute the call right, on a poisoned result; then it is timed in turns with
the first one. The fastest are timed against each other again, until their medians are certain or the budget is up. What is kept
is the fastest that is still right then and ahead of the choice without the table by more than the noise, or else that there is
none.

A fault of a kernel may end the process. So the table knows, before each candidate and after it, how far tuning has come: the
next call goes on from there. The candidate that was under way comes last then, and does not come a third time.
"""

import dataclasses
import datetime
import json
import math

import torch

from .. import numerics, validate
from ..errors import ArgumentError, BackendError, ShapeError, TuningError
from ..operations.views import viewed
from ..plans import on_device
from ..report import Report
from . import builds
from .bench import Bench, Candidate, GpuLostError, UnfitError, WrongError
from .clock import GpuClock
from .table import Entry, class_of

# Parts of the budget that have passed when
BUILDS = 0.5  # builds end,
ONE_BUILD = 0.9  # or where none has succeeded by then, the first one ends;
TRIALS = 0.8  # trials end: the rest is for the final

FINALISTS, MARGIN = 8, 1.1  # at most so many, within this factor of the fastest in the trials

UNDER_WAY = "under way when the process ended"
TWICE = f"{UNDER_WAY}, twice"


def tune(library, op, args, kwargs, budget=60.0, again=False, tell=lambda tried, of, fastest: None, clock=None) -> Report:
    """See tritonkernels.tune. `again` repeats what an interrupted tuning has tried; tell(...) is called after each trial."""
    op, args, kwargs = viewed(op, args, kwargs)
    operation = library.operation(op)
    validate.seconds("budget", budget)
    args = [_private(value) for value in args]
    kwargs = {name: _private(value) for name, value in kwargs.items()}
    if isinstance(out := kwargs.get("out"), torch.Tensor):  # the caller's is not written
        kwargs["out"] = torch.empty_strided(out.shape, out.stride(), dtype=out.dtype, device=out.device)
    call = operation.prepare(*args, **kwargs)
    library.runs_on(call.result)
    target = library.target(call.result.device)
    if not target.is_gpu:
        raise BackendError(f"tune needs a GPU: times of the {target.name} say nothing about one. Tune where you will run.")
    if not call.result.numel():
        raise ShapeError("the result", "no elements", "at least one", "Nothing is launched for it, so nothing can be tuned.")
    library.choose(call.problem, target)  # raises the reasons if every design refuses
    with on_device(call.result.device):
        clock = clock or GpuClock(call.result.device)
        tuning = _Tuning(library, call, target, clock, budget, again, tell)
        return tuning.run(numerics.Expected(call.problem, *args, **kwargs))


def _private(value):
    return value.detach() if isinstance(value, torch.Tensor) else value


class _Tuning:
    def __init__(self, library, call, target, clock, budget, again, tell):
        self._library, self._call, self._clock, self._budget, self._tell = library, call, clock, budget, tell
        self._started, self._path = clock.now(), library.tuned.path()
        self._target = target
        choices, self._refusals = library.candidates(call.problem, target)
        self._candidates = [Candidate(*choice) for choice in choices]
        known = library.tuned.find(library.package, call.problem, target.name, library.compiler)
        key = library.package, call.problem.op, target.name, library.compiler(), class_of(call.problem)
        self._entry = known or Entry(*key)
        tried = () if again else self._entry.tried
        self._outcomes = {(name, json.dumps(numbers)): outcome for name, numbers, outcome in tried}
        self._ready = {}  # the fastest contenders, by key

    def run(self, expected):
        self._build()
        self._bench = Bench(self._library, self._call, expected, self._clock)
        self._try_all()
        winner, default = self._final()
        self._library.forget_plans()  # repeated calls had the choice of before
        return self._report(winner, default)

    def _build(self):
        """Build what is to be timed: what earlier times are relative to, their fastest, and what is left."""
        yardsticks = [c for c, time in self._timed().items() if time == 1.0]
        candidates = list(dict.fromkeys([*yardsticks, *self._finalists(), *self._left()]))
        expected = builds.seconds(self._library, self._call, candidates)
        if expected > ONE_BUILD * self._budget:
            reason = f"No kernel of this call is built yet, and the first is expected to take {expected:.0f} s"
            allowed = f"at least {math.ceil(expected / ONE_BUILD)} s"
            raise ArgumentError("budget", f"{self._budget:g} s", allowed, f"{reason}: pass more seconds.")
        passed = self._clock.now() - self._started
        soon, late = (share * self._budget - passed for share in (BUILDS, ONE_BUILD))
        outcomes = builds.run(self._library, self._target, self._call, candidates, soon, late)
        self._built = {candidate for candidate, failure in outcomes.items() if failure is None}
        for candidate, failure in outcomes.items():
            if failure is not None:
                self._note(candidate, failure)

    def _outcome(self, candidate):
        return self._outcomes.get(candidate.key)

    def _timed(self):
        """{candidate: time relative to the first's}"""
        return {c: self._outcome(c) for c in self._candidates if isinstance(self._outcome(c), float)}

    def _left(self):
        """The candidates to try, those of ended processes last."""
        left = [c for c in self._candidates if self._outcome(c) in (None, UNDER_WAY)]
        return sorted(left, key=lambda candidate: self._outcome(candidate) is not None)

    def _try_all(self):
        first = self._first_of_before()
        end = self._started + self._budget
        for candidate in self._left():
            if candidate not in self._built:
                continue
            if self._clock.now() >= (self._started + TRIALS * self._budget if first else end):
                break
            self._note(candidate, UNDER_WAY if self._outcome(candidate) is None else TWICE)
            if contender := self._attempt(candidate, self._bench.contender, candidate):
                time = self._attempt(candidate, self._bench.trial, contender, first or contender)
                if time is not None:
                    first = first or contender
                    self._note(candidate, round(time, 4))
                    self._keep_ready(contender)
            timed = self._timed()
            fastest = min(timed, key=timed.get, default="none so far")
            self._tell(len(self._candidates) - len(self._left()), len(self._candidates), str(fastest))
        if first is None:
            raise self._nothing_found()

    def _first_of_before(self):
        """The contender that an earlier call's times are relative to; None, and without those times, if there is none."""
        for candidate, time in self._timed().items():
            if time == 1.0 and candidate in self._built:
                if contender := self._attempt(candidate, self._bench.contender, candidate):
                    self._keep_ready(contender)
                    return contender
                break
        self._outcomes = {key: outcome for key, outcome in self._outcomes.items() if not isinstance(outcome, float)}
        return None

    def _nothing_found(self):
        if not self._left() and not self._timed():
            return TuningError(
                f"no candidate computes this right: {self._faults()}. Leave this call to torch, and report these faults."
            )
        remedy = f"Builds end with the call: pass more seconds, such as {2 * self._budget:g}."
        if self._built:
            remedy = "Call again: it goes on with the others."
        return ArgumentError("budget", f"{self._budget:g} s", "more than the first right kernel takes", remedy)

    def _attempt(self, candidate, do, *args):
        """do(*args), or None: then the candidate's outcome says why."""
        try:
            return do(*args)
        except WrongError as error:
            self._note(candidate, f"wrong: {error}")
        except UnfitError as error:
            self._note(candidate, str(error))
        except GpuLostError as error:
            self._note(candidate, str(error))
            raise
        return None

    def _note(self, candidate, outcome):
        self._outcomes[candidate.key] = outcome
        tried = [[c.design.name, c.numbers, self._outcome(c)] for c in self._candidates if self._outcome(c) is not None]
        self._entry = dataclasses.replace(self._entry, tried=tried)
        self._library.tuned.store(self._entry)

    def _keep_ready(self, contender):
        """Others' graphs and workspaces are freed."""
        self._ready[contender.candidate.key] = contender
        wanted = {candidate.key for candidate in self._finalists()}
        self._ready = {key: ready for key, ready in self._ready.items() if key in wanted}

    def _finalists(self):
        """The fastest in the trials, and the choice without the table."""
        timed = self._timed()
        ranking = sorted(timed, key=timed.get)
        fast = [c for c in ranking if timed[c] <= MARGIN * timed[ranking[0]]][:FINALISTS]
        return fast + [c for c in self._candidates[:1] if c in timed and c not in fast]

    def _final(self):
        """(winner, contender of the choice without the table or None), which are in the table then."""
        end = self._started + self._budget
        finalists = [c for c in self._finalists() if c in self._built]
        contenders = [self._ready.get(c.key) or self._attempt(c, self._bench.contender, c) for c in finalists]
        contenders = [contender for contender in contenders if contender]
        if not contenders:
            raise self._nothing_found()
        self._bench.final(contenders, end)
        default = next((c for c in contenders if c.candidate is self._candidates[0]), None)
        winner = min(contenders, key=lambda contender: contender.ms)
        if default and not winner.beats(default):
            winner = default
        if not self._attempt(winner.candidate, self._bench.is_still_right, winner):
            return self._final()  # among others: it is out
        chosen = {"design": winner.candidate.design.name, "config": winner.candidate.numbers}
        self._entry = dataclasses.replace(
            self._entry,
            **(chosen if winner is not default else {"design": None, "config": {}}),
            ms=_rounded(winner.ms),
            default_ms=_rounded(default.ms) if default else None,
            date=datetime.date.today().isoformat(),
            tried=self._entry.tried if self._left() else [],
        )
        self._library.tuned.store(self._entry)
        return winner, default

    def _faults(self):
        named = ((c, self._outcome(c)) for c in self._candidates)
        return {str(c): outcome for c, outcome in named if isinstance(outcome, str) and outcome != UNDER_WAY}

    def _report(self, winner, default):
        faults = self._faults()
        wrong = sum(fault.startswith("wrong: ") for fault in faults.values())
        return Report(
            library=self._library.package,
            op=self._call.problem.op,
            target=self._entry.gpu,
            problem=self._entry.problem,
            winner=_described(winner),
            default=_described(default) if default else str(self._outcome(self._candidates[0])),
            speedup=default.ms / winner.ms if default else None,
            timed=len(self._timed()),
            refused=len(self._refusals),
            wrong=wrong,
            failed=len(faults) - wrong,
            left=len(self._left()),
            table=str(self._path),
            **({"faults": faults} if faults else {}),
        )


def _described(contender):
    return {"design": contender.candidate.design.name, "config": contender.candidate.numbers, "ms": contender.ms}


def _rounded(ms):
    return float(f"{ms:.5g}")
