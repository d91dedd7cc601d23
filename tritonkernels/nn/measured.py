"""Times of modules and of models, ours and torch's in turns: in a CUDA graph, which leaves out the host, and eagerly."""

import functools
import math
import random
from typing import NamedTuple

import torch
from torch.utils import _pytree as pytree

from ..choice.bench import Contender, race
from ..choice.clock import flushes_to_hide, sample

WARM_UPS = 4  # builds, plans, cuDNN's search
CALLS = (2, 16)  # in a run, least and most: eagerly, the host goes on while the GPU computes
RUN_S = 2e-3  # of a run of several calls
GRAPH, EAGERLY = "in a CUDA graph", "eagerly"


class Times(NamedTuple):
    """Microseconds of a call."""

    ours: float
    torchs: float
    faster: bool  # ours, by more than the noise


class Measured(dict):
    """{how the calls were made: their Times}: GRAPH first, where both can be captured, and EAGERLY."""

    @property
    def faster(self):
        return all(times.faster for times in self.values())

    @property
    def shown(self):
        """The Times to show: those without the host, if there are any."""
        return next(iter(self.values()))

    def __str__(self):
        ratios = ", ".join(f"{times.torchs / times.ours:.2f} {how}" for how, times in self.items())
        return f"torch / ours {ratios}" + ("" if GRAPH in self else ", as no CUDA graph can capture it")


class Operands(NamedTuple):
    module: torch.nn.Module
    input: torch.Tensor
    wanted: list[torch.Tensor]  # their gradients
    gradient: torch.Tensor | None  # of the result


def of_module(call, module, options, clock, until):
    """The Measured of a module's Call, on tensors of its forms with random values. Operands change from call to call, so
    that L2 does not hold them."""
    device = module.weight.device
    with torch.set_grad_enabled(call.backward), call.autocast(device):
        sets = [_operands(call, module, options)]
        steps = [functools.partial(_module_step, forward) for forward in (call.kind.forward, call.kind.torchs.forward)]
        _warm_up([functools.partial(step, sets[0]) for step in steps], clock)
        started = clock.now()
        for step in steps:
            step(sets[0])
        clock.synchronize()
        calls = max(CALLS[0], min(CALLS[1], int(RUN_S / (clock.now() - started))))
        of_a_set = max(1, sum(form.bytes for form in (call.input, *call.parameters) if form))
        while len(sets) < min(calls, math.ceil(2 * clock.l2_bytes / of_a_set)):
            sets.append(_operands(call, module, options))
        runs = [functools.partial(_in_a_row, step, [sets[i % len(sets)] for i in range(calls)]) for step in steps]
        return measured(runs, clock, until, calls)


def of_models(ours, torchs, args, kwargs, clock, until):
    """The Measured of two models: of a forward, and of the backward of what it records, from gradients of ones."""
    runs = [functools.partial(_model_step, model, args, kwargs) for model in (ours, torchs)]
    _warm_up(runs, clock)
    return measured(runs, clock, until, captured=not any(map(clock.waits, runs)))


def measured(runs, clock, until, calls=1, captured=True):
    """The Measured of runs, ours and torch's, which have run before and are of so many calls each."""
    found, shuffled = Measured(), random.Random(0)
    replays = [captured and clock.replay(run) for run in runs]
    ways = {GRAPH: (replays, flushes_to_hide(replays, clock))} if all(replays) else {}
    ways[EAGERLY] = runs, 0
    for how, (own, flushes) in ways.items():

        def one_round(contenders, flushes=flushes):
            for contender in shuffled.sample(contenders, len(contenders)):
                contender.times.append(sample(clock, contender.run, flushes)[0])

        ours, torchs = contenders = [Contender(name, run) for name, run in zip(("ours", "torch"), own)]
        now = clock.now()
        race(contenders, one_round, clock, now + (until - now) / (len(ways) - len(found)))
        found[how] = Times(1e3 * ours.ms / calls, 1e3 * torchs.ms / calls, ours.beats(torchs))
    return found


def _operands(call, module, options):
    device = module.weight.device
    input, *parameters = (form and form.random(device) for form in (call.input, *call.parameters))
    own = call.kind.__new__(call.kind)
    vars(own).update(vars(module), _parameters=dict(zip(module._parameters, parameters)), **options)
    wanted = [t for t in (input, *parameters) if t is not None and t.requires_grad]
    gradient = torch.randn_like(call.kind.torchs.forward(own, input)) if call.backward else None
    return Operands(own, input, wanted, gradient)


def _module_step(forward, operands):
    result = forward(operands.module, operands.input)  # without the module's hooks
    if operands.gradient is not None:
        torch.autograd.grad(result, operands.wanted, operands.gradient)


def _model_step(model, args, kwargs):
    torch.clear_autocast_cache()  # each step casts the weights, as in a context of its own
    results = [t for t in pytree.tree_leaves(model(*args, **kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]
    wanted = [t for t in (*model.parameters(), *pytree.tree_leaves((args, kwargs))) if getattr(t, "requires_grad", False)]
    if results:
        torch.autograd.grad(results, wanted, [torch.ones_like(t) for t in results], allow_unused=True)


def _warm_up(runs, clock):
    for _ in range(WARM_UPS):
        for run in runs:
            run()
    clock.synchronize()


def _in_a_row(step, sets):
    for operands in sets:
        step(operands)
