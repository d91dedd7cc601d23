"""Which modules of a model are faster as ours: first each call of a module that is unlike the others, then the whole model.

All is measured on copies, which share the parameters' memory, so the model itself does not run.
"""

from typing import NamedTuple

import torch
from torch.utils import _pytree as pytree

from ..choice.clock import GpuClock
from ..errors import ArgumentError, TritonKernelsError
from ..plans import on_device
from ..report import progress
from .calls import Call, aliased, calls_of, private
from .measured import Measured, of_models, of_module

OF_MODULES = 0.8  # of the budget at most; the rest is for the whole model


class Verdict(NamedTuple):
    swapped: bool
    why: str
    ours_us: float | None = None
    torch_us: float | None = None


def judge(model, kinds, options, inputs, budget, clock=None):
    """({module: Verdict}, the whole model's Verdict or None) of the modules in {module: kind}. `clock` is the GPU's."""
    on = {module: module.weight.device for module in kinds}
    device = next((own for own in on.values() if clock or own.type == "cuda"), None)
    where = f"measured is what is on {device}" if device else "what is faster is measured on a GPU only"
    verdicts = {module: Verdict(False, f"on {own}: {where}") for module, own in on.items() if own != device}
    here = {module: kind for module, kind in kinds.items() if module not in verdicts}
    if inputs is None or not here:
        return verdicts | {module: Verdict(False, "sizes are unknown: pass inputs=") for module in here}, None
    random_state = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with on_device(device), random_state, torch.set_grad_enabled(model.training and torch.is_grad_enabled()):
        clock = clock or GpuClock(device)
        end = clock.now() + budget
        arguments, calls = _learnt(model, here, inputs)
        distinct = {call: module for module, own in calls.items() for call in own if isinstance(call, Call)}
        with progress(len(distinct) + 1) as advance:
            measures, until = {}, end - (1 - OF_MODULES) * budget
            for call, module in distinct.items():
                advance(str(call))
                now, left = clock.now(), len(distinct) - len(measures)
                measures[call] = f"not measured: the budget of {budget:g} s was up"
                if now < until:
                    measures[call] = _attempt(of_module, call, module, options, clock, now + (until - now) / left)
            verdicts |= {module: _verdict([measures.get(call, call) for call in own]) for module, own in calls.items()}
            faster = {module: kind for module, kind in here.items() if verdicts[module].swapped}
            if not faster:
                return verdicts, None
            advance("the whole model")
            whole = _verdict([_attempt(of_models, *_both(model, faster, options), *arguments, clock, end)])
    if not whole.swapped:
        undone = "faster by itself, but the whole model is not"
        verdicts |= {module: verdicts[module]._replace(swapped=False, why=undone) for module in faster}
    return verdicts, whole


def _learnt(model, kinds, inputs):
    """((args, kwargs) like the inputs, calls_of the modules with them)."""
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (inputs if isinstance(inputs, tuple) else (inputs,), {})
    try:
        args, kwargs = pytree.tree_map_only(torch.Tensor, private, (args, kwargs))
        return (args, kwargs), calls_of(model, kinds, args, kwargs)
    except Exception as error:  # whatever the model's own forward raises
        got, allowed = f"{type(error).__name__}: {error}", "inputs on which a copy of the model runs"
        raise ArgumentError("inputs", got, allowed, "Or pass only_where_faster=False.") from error


def _attempt(measure, *args):
    """What it has Measured, or in words why it could not."""
    try:
        return measure(*args)
    except torch.OutOfMemoryError:
        return "not measured: the GPU's memory is too small for both"
    except TritonKernelsError as error:
        return str(error)


def _verdict(outcomes):
    """The module's Verdict from what is known of each of its calls, as Measured or in words."""
    if not outcomes:
        return Verdict(False, "not called with these inputs")
    if unknown := [outcome for outcome in outcomes if not isinstance(outcome, Measured)]:
        return Verdict(False, unknown[0])
    faster = all(outcome.faster for outcome in outcomes)
    ours, torchs = (sum(us) for us in zip(*((outcome.shown.ours, outcome.shown.torchs) for outcome in outcomes)))
    ratios = "; ".join(dict.fromkeys(map(str, outcomes)))
    return Verdict(faster, f"{'faster' if faster else 'not faster'}: {ratios}", ours, torchs)


def _both(model, faster, options):
    """A copy of the model with ours where they are faster, and one with torch's."""
    ours, torchs = aliased(model), aliased(model)
    for module, twin in zip(model.modules(), ours.modules()):
        if module in faster:
            faster[module].adopt(twin, options)
    return ours, torchs
