"""One model in one precision, measured in a process of its own: with torch's modules, and with every Linear and Conv2d ours.

First all models prepare at a time, since the host then builds kernels: first calls, memory, and a float64 run. Then one after
the other is timed, alone on the GPU.
"""

import contextlib
import copy
import functools
import importlib
import time
from dataclasses import dataclass, field
from typing import Any

import torch

from tritonkernels.choice.clock import GpuClock, flushes_to_hide, sample
from tritonkernels.nn import SWAPPED

from .. import baselines, contenders
from ..turns import build_native, in_turns, warm
from . import kernel_time, zoo

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "tf32": torch.float32}
PRECISIONS = {"bf16": None, "fp32": "ieee", "tf32": "tf32"}  # of our modules
KINDS = tuple(kind.torchs for kind in SWAPPED)
FORWARD, STEP = "forward", "training step"
GRAPH, EAGER = "graph", "eager"
CHOSEN = ", where faster"  # after a package's name: with the modules that nn.replace chooses by itself
ROUNDS = (10, 100)  # least, most
SECONDS = 0.8  # of rounds of a step in one way, after the least
LOCK_S = 60  # for a float64 run of another model
WORSE = 3.0  # than torch's error, and
SLACK = {"bf16": 2**-8, "fp32": 1e-6, "tf32": 2**-11}  # this, ours may be
SMALL = 1e-3  # of the norm of all gradients: the error of a parameter with a smaller one is relative to this


@dataclass
class Row:
    """A forward or a training step of a model. {whose: ...}: "torch", or a package whose modules it has."""

    model: str  # its key in the zoo
    title: str
    dtype: str
    size: str  # of the inputs
    what: str = ""  # FORWARD or STEP; none where the model could not be made
    layers: int = 0  # that nn.replace swaps
    replaced: dict[str, int] = field(default_factory=dict)  # {package: layers that are ours}
    left: list[str] = field(default_factory=list)  # why others are not
    times: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)  # {whose: {GRAPH or EAGER: times}}
    error: dict[str, float] = field(default_factory=dict)  # of the result, relative to float64's: norm of the difference
    gradient_error: dict[str, float] = field(default_factory=dict)  # of all gradients of parameters
    worst_gradient_error: dict[str, list] = field(default_factory=dict)  # of one parameter: [error, its name]
    first_s: dict[str, float] = field(default_factory=dict)  # of the first call, builds included
    peak_bytes: dict[str, int] = field(default_factory=dict)  # of a call, above what was allocated before
    kernels: dict[str, dict[str, Any]] = field(default_factory=dict)  # kernel_time.of_step
    ok: bool | None = None  # None where it was not run
    message: str | None = None
    environment: dict[str, Any] = field(default_factory=dict, repr=False)


class OfModel:
    """Work of a Worker: the tasks are "prepare", then "measure", which returns the Rows."""

    def __init__(self, key, dtype, packages, budget, lock):
        self.key, self.dtype, self.packages, self.budget, self.lock = key, dtype, packages, budget, lock
        self.crowded = False  # the GPU's memory was too small for all models at a time: this one prepares again, alone

    @property
    def model(self):
        return zoo.MODELS[self.key]

    def __call__(self, task, tell):
        """None if the task is done; else what went wrong."""
        matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        fp32 = "tf32" if self.dtype == "tf32" else "ieee"
        settings = ((matmul, "fp32_precision", fp32), (cudnn.conv, "fp32_precision", fp32), (cudnn, "benchmark", True))
        try:
            with baselines.switched(settings):
                return getattr(self, task)()
        except Exception as error:  # whatever the model raises
            self.crowded = task == "prepare" and isinstance(error, torch.OutOfMemoryError)
            return None if self.crowded else f"{type(error).__name__}: {error}"

    def prepare(self):
        self.device = contenders.device()
        self.clock = GpuClock(self.device) if self.device.type == "cuda" else None
        module, self.inputs = zoo.made(self.model, DTYPES[self.dtype], self.device, small=self.clock is None)
        self.rows = [self._row(module, what) for what in ((FORWARD, STEP) if self.model.trained else (FORWARD,))]
        self.modules, self.exact = {"torch": module}, {}
        for package in self.packages:
            self.modules[package] = copy.deepcopy(module)
            nn = importlib.import_module(f"{contenders.PACKAGES[package]}.nn")
            self._note(package, nn.replace(self.modules[package], PRECISIONS[self.dtype], only_where_faster=False))
        for row in self.rows:
            with faults_of(row, torch.OutOfMemoryError):
                for whose, step in self._steps(row).items():
                    row.first_s[whose] = self._seconds(step)
                    if self.clock:
                        row.peak_bytes[whose] = self._peak(step)
                    self._free()
        with taken(self.lock):  # as much memory as it takes, one at a time
            exact, inputs = copy.deepcopy(module).double(), zoo.cast(self.inputs, torch.float64)
            for row in self.rows:
                with faults_of(row, torch.OutOfMemoryError):
                    self.exact[row.what] = STEPS[row.what](exact, inputs)()
            del exact
            self._free()

    def measure(self):
        if self.crowded:
            self.prepare()
        if self.clock:
            build_native(self.device)
            self._choose()
        for row in self.rows:
            with faults_of(row):
                steps = self._steps(row)
                runs = self._time(row, steps) if self.clock else steps
                for whose, run in runs.items():  # the path that was timed
                    self._judge(row, whose, run)
                del runs
                for whose, step in steps.items() if self.clock else ():
                    self._free()
                    row.kernels[whose] = kernel_time.of_step(step, self.modules[whose], KINDS)
            self._free()
            row.ok = row.message is None
        return self.rows

    def _row(self, module, what):
        module.eval()
        layers = sum(type(each) in KINDS for each in module.modules())
        size = self.model.size if self.clock else "small"
        return Row(self.key, self.model.title, self.dtype, size, what, layers)

    def _note(self, whose, swaps):
        for row in self.rows:
            row.replaced[whose] = sum(swap.swapped for swap in swaps)
            if not whose.endswith(CHOSEN):
                row.left += [f"{swap.name}: {swap.why}" for swap in swaps if not swap.swapped]

    def _choose(self):
        """Models as nn.replace makes them for their users, for a training step where there is one."""
        for package in self.packages if self.budget else ():
            chosen = copy.deepcopy(self.modules["torch"]).train(self.model.trained)
            nn = importlib.import_module(f"{contenders.PACKAGES[package]}.nn")
            with torch.set_grad_enabled(self.model.trained):
                swaps = nn.replace(chosen, PRECISIONS[self.dtype], inputs=self.inputs, budget=self.budget)
            self.modules[package + CHOSEN] = chosen
            self._note(package + CHOSEN, swaps)

    def _steps(self, row):
        return {whose: STEPS[row.what](module, self.inputs) for whose, module in self.modules.items()}

    def _time(self, row, steps):
        """{whose: what was timed, in a graph where one can capture all}."""
        warm(steps)
        results, replays = {}, {}
        for whose, step in steps.items():
            if not self.clock.waits(step):
                replays[whose] = self.clock.replay(functools.partial(_into, results, whose, step))
        captured = len(replays) == len(steps) and all(replays.values())
        if captured:
            self._take_turns(row, GRAPH, replays, flushes_to_hide(replays.values(), self.clock))
        self._take_turns(row, EAGER, steps, 0)
        return {whose: functools.partial(_replayed, replays[whose], results, whose) for whose in steps} if captured else steps

    def _take_turns(self, row, way, runs, flushes):
        timed = {whose: functools.partial(self._us, run, flushes) for whose, run in runs.items()}
        took = sum(run() for run in timed.values()) / 1e6
        rounds = max(ROUNDS[0], min(ROUNDS[1], int(SECONDS / took)))
        for whose, times in in_turns(timed, rounds).items():
            row.times.setdefault(whose, {})[way] = times

    def _us(self, run, flushes):
        return 1e3 * sample(self.clock, run, flushes)[0]

    def _judge(self, row, whose, run):
        """Note the errors of what run() computes, and a message if they are much above torch's, which comes first."""
        result, gradients = run()
        exact, exact_gradients = self.exact[row.what]
        row.error[whose] = relative(result, exact)
        if gradients:
            norms = [gradient.norm() for gradient in exact_gradients.values()]
            least = SMALL * torch.stack(norms).norm()
            squares = [(gradients[name].double() - own).norm() for name, own in exact_gradients.items()]
            row.gradient_error[whose] = (torch.stack(squares).norm() / torch.stack(norms).norm()).item()
            errors = {name: (off / norm.clamp(min=least)).item() for name, off, norm in zip(exact_gradients, squares, norms)}
            worst = max(errors, key=lambda name: errors[name] if errors[name] == errors[name] else float("inf"))
            row.worst_gradient_error[whose] = [errors[worst], worst]
        for what, own, torchs in (
            ("result", row.error[whose], row.error["torch"]),
            ("gradients", row.gradient_error.get(whose), row.gradient_error.get("torch")),
            (*reversed(row.worst_gradient_error.get(whose, [None, ""])), row.worst_gradient_error.get("torch", [0])[0]),
        ):
            if own is not None and not own <= WORSE * torchs + SLACK[self.dtype]:
                row.message = f"{whose}: the error of {what} is {own:.2e}, torch's {torchs:.2e}"

    def _seconds(self, step):
        begun = time.perf_counter()
        step()
        if self.clock:
            self.clock.synchronize()
        return time.perf_counter() - begun

    def _peak(self, step):
        self.clock.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        self.clock.synchronize()
        return torch.cuda.max_memory_allocated() - before

    def _free(self):
        """Leave the GPU's memory to the other models."""
        if self.clock:
            self.clock.synchronize()
            torch.cuda.empty_cache()


def forward(module, inputs):
    """A function that returns (the result, no gradients)."""
    module.eval()

    def step():
        with torch.no_grad():
            return zoo.call(module, inputs), {}

    return step


def training_step(module, inputs):
    """A function that returns (the result, {name: the gradient of the parameter}) of a forward and a backward, without an
    optimizer."""
    names, parameters = zip(*((name, own) for name, own in module.train().named_parameters() if own.requires_grad))

    def step():
        result = zoo.call(module, inputs)
        loss = result.to(torch.promote_types(result.dtype, torch.float32)).square().mean()
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        return result.detach(), {name: own for name, own in zip(names, found) if own is not None}

    return step


STEPS = {FORWARD: forward, STEP: training_step}


@contextlib.contextmanager
def taken(lock):
    """A context with the lock; without it where another process keeps it too long, perhaps because it was killed."""
    held = lock.acquire(timeout=LOCK_S)
    try:
        yield
    finally:
        if held:
            lock.release()


@contextlib.contextmanager
def faults_of(row, but=()):
    """A context whose exceptions become the row's message, unless it has one; `but` those of these classes."""
    try:
        yield
    except but:
        raise
    except Exception as error:  # whatever the model raises
        row.message = row.message or f"{type(error).__name__}: {error}"


def relative(result, exact):
    return ((result.double() - exact).norm() / exact.norm()).item()


def _into(results, whose, step):
    results[whose] = step()


def _replayed(replay, results, whose):
    replay()
    return results[whose]
