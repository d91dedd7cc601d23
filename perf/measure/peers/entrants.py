"""The peers of a comparison. Each is first called once, on each case, in another process, which has a limited time.

Peers tune and compile in their first call; some tuners take very long or hang, and a kernel's fault would take the comparison
with it. In a process of its own that costs a limit of time and nothing else. What the process leaves on disk (compiled kernels,
the tuner's choice) is what the same call then finds here. A peer that keeps nothing on disk tunes once more, which has ended in
time once before. A peer that did not end in time, or ended the process, is not asked again.
"""

import contextlib
import importlib

import torch

from tritonkernels.errors import UnsupportedError
from tritonkernels.plans import on_device

from .. import baselines, contenders, workers
from . import PEERS

LIMIT = 120.0  # seconds of a first call; the first of all includes the start of the process


def first_call(task, tell):
    """(whether the peer refused, why it does not enter the case), or None after a call that ended well."""
    name, case, seed = task
    device = contenders.device()
    if device.type == "cuda":
        torch.cuda.empty_cache()  # of the case before
    args, kwargs = case.arguments(seed, device, drawn_on=device)
    prepared = importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)
    with on_device(device), baselines.precision(prepared.problem.precision):
        try:
            call, _ = PEERS[name].build(prepared.problem, *args, **kwargs)
            call(*args, out=torch.empty_like(prepared.result), **kwargs)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        except UnsupportedError as refusal:
            return True, refusal.reason
        except Exception as error:  # whatever it is, it is this peer's
            return False, _in_words(error)
    return None


def _in_words(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


class Entrants(contextlib.AbstractContextManager):
    """The peers of these names. What they `refused` and where they were `skipped` is {(name, why): the cases, if any}."""

    def __init__(self, names, device, seed, limit=LIMIT, start=workers.Worker, wait=workers.wait):
        missing = {name: PEERS[name].missing(device) for name in names}
        self.refused, self.skipped = {}, {(name, why): [] for name, why in missing.items() if why}
        self._names, self._seed, self._limit = [name for name in missing if not missing[name]], seed, limit
        self._start, self._wait, self._worker = start, wait, None

    def __exit__(self, *exception):
        if self._worker:
            self._worker.end()
            self._worker = None

    def of(self, case, problem, args, kwargs):
        """A Contender of each that has an answer to the case."""
        for name in list(self._names):
            if not (stopped := self._stopped(name, case)):
                try:
                    call, writes_out = PEERS[name].build(problem, *args, **kwargs)
                except Exception as error:  # although it went well in the other process
                    stopped = False, _in_words(error)
            if stopped:
                refused, why = stopped
                (self.refused if refused else self.skipped).setdefault((name, why), []).append(f"{case.op} {case.name}")
                continue
            version = getattr(importlib.import_module(PEERS[name].package), "__version__", "unknown")
            config = {"version": str(version)}
            yield contenders.Contender("peer", name, lambda *a, c=config, **k: {"config": c}, call, writes_out)

    def _stopped(self, name, case):
        """What first_call returns, from the other process."""
        self._worker = self._worker or self._start(first_call)
        self._worker.give((name, case, self._seed))
        if self._wait([self._worker], self._limit):
            what, why = self._worker.receive()
            if what == "done":
                return why
        else:
            why = f"its first call did not end within {self._limit:.0f} s"
        self.__exit__()
        self._names.remove(name)
        return False, f"{why}; it is not asked again"

    def lines(self, refusals):
        """A line for each peer and reason why it was skipped, and for its refusals or how many there are."""
        yield from (_line("Skipped", *skipped) for skipped in self.skipped.items())
        if refusals:
            yield from (_line("Refused", *refused) for refused in self.refused.items())
        elif count := sum(map(len, self.refused.values())):
            yield f"Refused: {count}, by peers; --refusals says why"


def _line(what, of, cases):
    name, why = of
    more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
    return f"{what}: peer {name}{f', {cases[0]}{more}' if cases else ''}: {why}"
