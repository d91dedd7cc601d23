"""What a call would do, without launching anything: the design and config that it gets, its other configs, and its limits."""

from typing import Any

from .analysis import roofline
from .analysis.tile import tile_facts
from .choice.work import Work
from .design import as_dict
from .operations.views import viewed
from .report import Report
from .target import Target

BEST = 10  # choices that explain shows


def configs(library, op, *args, design=None, target=None, **kwargs) -> list[dict[str, Any]]:
    """The legal configs of the design that a call would use, or of the named one, as dicts; its default first."""
    call, target = _prepared(library, op, args, kwargs, target)
    chosen, default = library.choose(call.problem, target, design)
    found = [as_dict(config) for config in (default, *chosen.configs(call.problem, target))]
    return [config for at, config in enumerate(found) if config not in found[:at]]


def explain(library, op, *args, design=None, config=None, target=None, **kwargs) -> Report:
    """A Report of what a call would do, without launching anything."""
    call, target = _prepared(library, op, args, kwargs, target)
    problem = call.problem
    asked = design is not None or config is not None
    tuned = None if asked else library.from_tables(problem, target)
    chosen_by = "caller" if asked else tuned[2] if tuned else "model"
    chosen, config = library.choose(problem, target, design, config)
    parts = call.parts if call.result.numel() else ()  # an empty result launches nothing
    launches = [launch for tensors in parts for launch in chosen.launches(problem, config, *tensors)]
    predicted = _predicted(library, problem, target, chosen, config)
    ranked = [] if asked or not target.is_gpu else library.ranking(problem, target)[:BEST]
    return Report(
        library=library.package,
        op=op,
        design=chosen.name,
        kind=chosen.kind,
        summary=chosen.summary,
        mirrors=chosen.mirrors,
        config=as_dict(config),
        chosen_by=chosen_by,
        kernels=[launch.name for launch in launches],
        grid=[launch.grid for launch in launches],
        target=target.name,
        **({"figures": target.origin} if target.measured else {}),
        problem=problem.describe(),
        precision=problem.precision,
        flops=problem.flops,
        bytes=problem.bytes,
        intensity=problem.intensity,
        limits=roofline.limits(problem, target),
        **({"predicted": predicted} if predicted else {}),
        **({"ranking": [_in_ranking(choice) for choice in ranked]} if ranked else {}),
    )


def _prepared(library, op, args, kwargs, target):
    """(the Call of a user's arguments, the Target: the one named, else that of the tensors' device)."""
    op, args, kwargs = viewed(op, args, kwargs)
    call = library.operation(op).prepare(*args, **kwargs)
    if target is None:
        library.runs_on(call.result)
        target = library.target(call.result.device)
    return call, Target.named(target) if isinstance(target, str) else target


def _predicted(library, problem, target, chosen, config):
    """What the model and the analysis say of a config, by name; empty without a GPU, and for a lesson."""
    if not target.is_gpu or chosen.is_lesson:
        return {}
    found = (c for c in library.ranking(problem, target, chosen.name) if as_dict(c.config) == as_dict(config))
    facts = {}
    if chosen.tile and target.vendor == "nvidia":
        kernel = max(chosen.work(problem, config, target), key=Work.weight)
        facts = tile_facts(problem, chosen.tile(config), target, kernel.registers, kernel.shared)
        facts |= {"estimated": "registers, shared_bytes"} if "estimated" in facts else {}
    choice = next(found)
    return choice.estimate._asdict() | {"records": _records(choice)} | facts


def _in_ranking(choice):
    return {
        "seconds": choice.estimate.seconds,
        "bound_by": choice.estimate.bound_by,
        "records": _records(choice),
        "design": choice.design.name,
        "config": as_dict(choice.config),
    }


def _records(choice):
    return "timed" if choice.timed else "never timed"
