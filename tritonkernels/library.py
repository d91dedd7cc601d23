"""The path of a call, the same in both packages: Problem -> Design -> Config -> launches -> result; repeated: Plan -> result.

A Library is a package that computes Operations: `tritonkernels` or `cuda_reference`. They differ in where they run (the fields
of Library) and in which designs they have.
"""

import dataclasses
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from . import numerics, validate
from .analysis import roofline
from .analysis.predict import predict
from .choice.choose import as_dict, choose_config
from .choice.table import USER, UserTable
from .design import Design
from .errors import UnknownDesignError, UnsupportedError
from .operation import Operation, Served
from .plans import WATCH, Plans, key_of, on_device
from .report import Report
from .target import Target
from .watch import Watch


@dataclass(eq=False)
class Library:
    package: str
    target: Callable[[torch.device], Target]  # of a tensor's device
    runs_on: Callable[[Any], None]  # raises DeviceError for a tensor that this library cannot run on
    misses: Callable[[Target], str | None] = lambda target: None  # why none of its designs runs on a target
    get_ready: Callable[[], Any] = lambda: None  # called before any design is imported
    switches: Callable[[], Any] = lambda: None  # global settings that a plan depends on
    compiler: Callable[[], str] = lambda: ""  # its name and minor version, for which tuned times hold
    tuned: UserTable = USER
    plans: Plans = field(default_factory=Plans, repr=False)
    served: dict[str, Served] = field(default_factory=dict, repr=False)  # by the operation's name
    _designs: dict[str, tuple[Design, ...]] = field(default_factory=dict, repr=False)

    def serve(self, operation: Operation, **fields):
        """Add an operation, computed by the designs of its ladder. `fields` are the other fields of Served."""
        self.served[operation.name] = Served(operation, **fields)

    def operation(self, op) -> Operation:
        """The Operation named `op`."""
        return self._served(op).operation

    def _served(self, op):
        if op not in self.served:
            raise validate.out_of_choices("op", op, tuple(sorted(self.served)))
        return self.served[op]

    def names(self, op) -> tuple[str, ...]:
        """The names of the operation's designs, simplest first; imports none of them."""
        return tuple(rung.name for rung in self.operation(op).rungs(self.package))

    def designs(self, op) -> tuple[Design, ...]:
        """The operation's designs, simplest first; each is in the file of its name."""
        served = self._served(op)  # rejects an unknown operation
        if op not in self._designs:
            self.get_ready()
            self._designs[op] = tuple(self._loaded(served))
        return self._designs[op]

    def _loaded(self, served):
        operation = served.operation
        found = {
            rung.name: importlib.import_module(f"{self.package}.{operation.name}.{rung.name}").DESIGN
            for rung in operation.own
            if rung.is_in(self.package)
        }
        for reduction in operation.reductions:
            for design in self.designs(reduction.to.name):
                found[operation.named(reduction, design.name)] = reduction.design(design, served.arrange)
        for rung in operation.rungs(self.package):
            yield dataclasses.replace(found[rung.name], name=rung.name, summary=rung.summary, mirrors=rung.mirrors)

    def choose(self, problem, target, design=None, config=None):
        """(design, config): the named design, else the tuned table's, else the first by preference that does not refuse and has
        a config that fits."""
        known = self.designs(problem.op)
        if design is not None:
            named = [d for d in known if d.name == design]
            if not named:
                remedy = self.operation(problem.op).renamed(design, self.package)
                raise UnknownDesignError("design", repr(design), ", ".join(d.name for d in known), remedy)
            known = named
        if unserved := self.misses(target):
            raise UnsupportedError(f"{self.package} cannot compute anything on {target.name}: {unserved}")
        if design is None and config is None and (tuned := self._tuned(problem, target)):
            return tuned
        refusals = {}
        for chosen in self._by_preference(problem, target, known):
            refusals[chosen.name] = chosen.refuses(problem, target)
            if refusals[chosen.name] is None:
                try:
                    return chosen, choose_config(chosen, problem, target, config)
                except UnsupportedError as error:
                    refusals[chosen.name] = str(error)
        reasons = "; ".join(f"{d.name}: {refusals[d.name]}" for d in known)
        raise UnsupportedError(f"{self.package}.{problem.op} cannot compute this on {target.name}: {reasons}")

    def _tuned(self, problem, target):
        """The (design, config) of the user's tuned table; None if it has none, or none that a call may get here."""
        entry = self.tuned.find(self.package, problem, target.name, self.compiler)
        if entry is None or entry.design is None:
            return None
        named = (d for d in self.designs(problem.op) if d.name == entry.design and d.refuses(problem, target) is None)
        return next(((d, c) for d in named for c in _unasked(d, problem, target) if as_dict(c) == entry.config), None)

    def candidates(self, problem, target):
        """([(design, config)] of what a call may get unasked, by preference, {name: why} of designs that refuse)."""
        known = self._by_preference(problem, target, self.designs(problem.op))
        refusals = {d.name: why for d in known if (why := d.refuses(problem, target)) is not None}
        willing = (d for d in known if d.name not in refusals)
        return [(d, config) for d in willing for config in _unasked(d, problem, target)], refusals

    def _by_preference(self, problem, target, known):
        by_name = {d.name: d for d in known}
        return [by_name[name] for name in dict.fromkeys(self._order(problem, target)) if name in by_name]

    def _order(self, problem, target):
        """Names of designs, best first: those that the operation's rule prefers, then all from the last of the ladder to the
        first, the operation's own before those of others. A name may come twice."""
        served = self._served(problem.op)
        operation, wanted = served.operation, served.prefer(problem, target)
        reductions = {reduction.to.name: reduction for reduction in operation.reductions}
        for name in (wanted,) if isinstance(wanted, str) else wanted:
            if name not in reductions:
                yield name
            elif reductions[name].refuses(problem) is None:
                for design in self._order(reductions[name].largest(problem), target):
                    yield operation.named(reductions[name], design)
        yield from (rung.name for rung in (*reversed(operation.own), *reversed(operation.ladder)))

    def _predicted(self, problem, target, chosen, config):
        """The analysis' prediction for a blocked product, else that of the operation's own rule; None if there is neither."""
        if chosen.tile and target.vendor == "nvidia":  # the analysis knows occupancy for NVIDIA's GPUs only
            return predict(problem, chosen.tile(config), target)
        expected = self._served(problem.op).expected(chosen.name, problem, target)
        return dataclasses.asdict(expected) if expected else None

    def call(self, operation, design, config, **arguments):
        """run(operation.prepare(**arguments), design, config); a repeated call runs its plan instead.

        The arguments are all of a user function's, in its order, `out` last. Forward-mode tangents and torch.func are refused
        here, because kernels would ignore them, and `out` counts as modified for autograd.
        """
        validate.no_transform(arguments)
        result = self._call(operation, design, config, arguments)
        if arguments["out"] is not None:
            torch.autograd.graph.increment_version(result)
        return result

    def _call(self, operation, design, config, arguments):
        key, tensors = key_of((operation.name, self.switches()), (design, config, *arguments.values()))
        plan = self.plans.find(key)
        if plan is not WATCH:
            result = plan.repeat(tensors) if plan else None
            return self.run(operation.prepare(**arguments), design, config) if result is None else result
        with Watch(tensors) as watch:
            result = self.run(operation.prepare(**arguments), design, config, watch.add_launch)
        if watch.disjoint:
            self.plans.keep(key, watch.plan(result, arguments["out"] is not None))
        return result

    def run(self, call, design=None, config=None, on_launch=lambda launched: None):
        """Run a Call and return its result. `on_launch` is called with the Launched, or None, of each launch."""
        self.runs_on(call.result)
        chosen, config = self.choose(call.problem, self.target(call.result.device), design, config)
        if call.result.numel():
            with on_device(call.result.device):
                for tensors in call.parts:
                    for launch in chosen.launches(call.problem, config, *tensors):
                        on_launch(launch.run())
        return call.result

    def judge(self, call, design, config, *args, **kwargs):
        """numerics.judge of the result of run(call, design, config), by the error bound of that design and config."""
        chosen, config = self.choose(call.problem, self.target(call.result.device), design, config)
        return numerics.judge(call.problem, call.result, *args, transform=chosen.transform(as_dict(config)), **kwargs)

    def _prepared(self, op, args, kwargs, target):
        """(the Call of a user's arguments, the Target: the one named, else that of the tensors' device)."""
        call = self.operation(op).prepare(*args, **kwargs)
        if target is None:
            self.runs_on(call.result)
            target = self.target(call.result.device)
        return call, Target.named(target) if isinstance(target, str) else target

    def configs(self, op, *args, design=None, target=None, **kwargs):
        """The legal configs of the design that `run` would use, or of the named one, as dicts; its default first."""
        call, target = self._prepared(op, args, kwargs, target)
        chosen, default = self.choose(call.problem, target, design)
        default = as_dict(default)
        return [default, *(c for c in map(as_dict, chosen.configs(call.problem, target)) if c != default)]

    def explain(self, op, *args, design=None, config=None, target=None, **kwargs):
        """A Report of what `run` would do, without launching anything."""
        call, target = self._prepared(op, args, kwargs, target)
        problem = call.problem
        asked = design is not None or config is not None
        chosen_by = "caller" if asked else "tuned table" if self._tuned(problem, target) else "rule"
        chosen, config = self.choose(problem, target, design, config)
        parts = call.parts if call.result.numel() else ()  # an empty result launches nothing
        launches = [launch for tensors in parts for launch in chosen.launches(problem, config, *tensors)]
        predicted = self._predicted(problem, target, chosen, config)
        return Report(
            library=self.package,
            op=op,
            design=chosen.name,
            summary=chosen.summary,
            mirrors=chosen.mirrors,
            config=as_dict(config),
            chosen_by=chosen_by,
            kernels=[launch.name for launch in launches],
            grid=[launch.grid for launch in launches],
            target=target.name,
            problem=problem.describe(),
            precision=problem.precision,
            flops=problem.flops,
            bytes=problem.bytes,
            intensity=problem.intensity,
            limits=roofline.limits(problem, target),
            **({"predicted": predicted} if predicted else {}),
        )


def _unasked(design, problem, target):
    """The design's configs within the operation's own error bound: one of a transform is for those who name it."""
    return [c for c in design.configs(problem, target) if design.transform(as_dict(c)) is None]
