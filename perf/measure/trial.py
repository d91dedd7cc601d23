"""A shape in one package: which contenders are to be timed, their builds, and their times, next to torch's.

A contender is (name of the design, numbers of the config). build and measure run in workers.py's processes.
"""

import contextlib
import functools
import importlib
import os
import random
from dataclasses import dataclass

import torch

from tritonkernels import numerics
from tritonkernels.choice import efficiency
from tritonkernels.choice.bench import HOPELESS, Bench, Candidate, Contender, UnfitError, WrongError
from tritonkernels.choice.clock import GpuClock
from tritonkernels.design import as_dict
from tritonkernels.errors import TritonKernelsError, UnsupportedError
from tritonkernels.plans import on_device

from . import baselines
from . import contenders as torch_and_packages
from .shapes import Shape, prepared

FEW = 5  # of so many contenders one was never timed, and another one is any
LEADERS = 3  # of the ranking, before there is one of each kind
FIRST = 3  # samples of each: what is loaded meanwhile may disturb one
ROUNDS = 6  # more of the contenders that are not hopelessly slow


@dataclass(frozen=True, eq=False)
class Trial:
    shape: Shape
    package: str
    contenders: tuple  # the choice's first one first


def library(package):
    importlib.import_module(package)
    return importlib.import_module(f"{package}.launch").LIBRARY


def plan(shape, package, target, number, pick="any"):
    """The Trial of `number` contenders, picked in one of PICKS."""
    try:
        ranked = library(package).ranking(shape.problem, target)
    except UnsupportedError:
        ranked = []
    picked = (ranked[at] for at in PICKS[pick](ranked, number, random.Random(shape.key)))
    return Trial(shape, package, tuple((choice.design.name, as_dict(choice.config)) for choice in picked))


def _any(ranked, number, rng):
    """The first of the ranking; some that were never timed; and some of any kind, so that the fit sees slow ones as well. The
    latter two are drawn by design, then by config: a design with many configs has no more."""
    others = set(range(1, len(ranked)))
    new = _drawn(rng, ranked, {at for at in others if not ranked[at].timed}, number // FEW)
    new += _drawn(rng, ranked, others - set(new), number // FEW)
    best = [at for at in range(len(ranked)) if at not in new][: number - len(new)]
    return *best, *new


def _kinds(ranked, number, rng):
    """The first of the ranking, then the first of each kind, design and tile, with splits and without: what the choice would
    take if it were wrong about those before."""
    first = {}
    for at, choice in enumerate(ranked):
        split = as_dict(choice.config).get("SPLIT_K", 1) > 1
        first.setdefault((choice.design.name, split, *sorted(efficiency.own_numbers(choice.config).items())), at)
    return list(dict.fromkeys([*range(min(LEADERS, len(ranked))), *first.values()]))[:number]


PICKS = {"any": _any, "kinds": _kinds}


def _drawn(rng, ranked, places, number):
    """`number` of the places of Choices, or all: each of a random design that has some left."""
    left, found = {}, []
    for at in sorted(places):
        left.setdefault(ranked[at].design.name, []).append(at)
    while left and len(found) < number:
        name = rng.choice(list(left))
        found.append(left[name].pop(rng.randrange(len(left[name]))))
        if not left[name]:
            del left[name]
    return found


def launches(case, package, target, contender):
    """The contender's launches, of tensors without memory."""
    call, served = prepared(case), library(package)
    design, config = served.choose(call.problem, target, *contender)
    return [launch for tensors in call.parts for launch in design.launches(call.problem, config, *tensors)]


def build(task, tell, whole=True):
    """Build the kernels of (case, package, contender); the reason if that fails for good. `whole`: with the others of their
    sources, else what a call builds."""
    device = torch_and_packages.device()
    _be_nice()
    case, package, contender = task
    try:
        with on_device(device):
            for launch in launches(case, package, library(package).target(device), contender):
                launch.build(whole)
    except TritonKernelsError as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    except Exception:  # it may be due to tensors that have no memory; if not, it comes again with those that have
        return None


@functools.cache
def _be_nice():
    os.nice(10)  # the process that measures comes first


def measure(trial, tell):
    """{"torch", "times", "wrong", "failed"} of a trial. Tells the index of the contender under way, None after the last."""
    device, served, case = torch_and_packages.device(), library(trial.package), trial.shape.case
    torch.cuda.empty_cache()  # memory that torch keeps of the trial before is none to load kernels into
    args, kwargs = case.arguments(0, device, drawn_on=device)
    with on_device(device):
        call = served.operation(case.op).prepare(*args, **kwargs)
        bench = Bench(served, call, numerics.Expected(call.problem, *args, **kwargs), _clock(device))
        target, found, ours = served.target(device), {"wrong": [], "failed": []}, []
        with baselines.precision(call.problem.precision):
            torch_s = list(_torch_s(case.op, bench, call, args, kwargs))
            for i, contender in enumerate(trial.contenders):
                tell(i)
                try:
                    ready = bench.contender(Candidate(*served.choose(call.problem, target, *contender)))
                    bench.round([ready])
                    ours.append(ready)
                except WrongError as error:
                    found["wrong"].append([*contender, str(error)])
                except UnfitError as error:
                    found["failed"].append([*contender, str(error)])
            tell(None)
            for _ in range(FIRST - 1):
                bench.round([*torch_s, *ours])
            fast = [c for c in ours if c.ms < HOPELESS * min(c.ms for c in ours)]
            for _ in range(ROUNDS):
                bench.round([*torch_s, *fast])
    fastest = min(torch_s, key=lambda c: c.ms, default=None)
    times = [[c.candidate.design.name, c.candidate.numbers, _us(c), _spread(c)] for c in ours]
    return {"torch": fastest and [fastest.candidate, _us(fastest)], "times": times, **found}


@functools.cache
def _clock(device):
    return GpuClock(device)


def _torch_s(op, bench, call, args, kwargs):
    for name, function, _ in baselines.BASELINES[op]:
        run = functools.partial(function, *args, out=torch.empty_like(call.result), **kwargs)
        with contextlib.suppress(UnsupportedError, RuntimeError):  # cuBLAS and cuDNN fail on some operands
            run()
            yield Contender(name, bench.repeated(run))


def _us(contender):
    return float(f"{1e3 * contender.ms:.4g}")


def _spread(contender):
    return float(f"{contender.standard_error / contender.ms:.2g}") if len(contender.times) > 1 else None
