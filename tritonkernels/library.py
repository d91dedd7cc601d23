"""The path of a call, the same in both packages: Problem -> Design -> Config -> launches -> result; repeated: Plan -> result.

A Library is a package that computes Operations: `tritonkernels` or `cuda_reference`. They differ in where they run (the fields
of Library) and in which designs they have.
"""

import dataclasses
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from . import native, numerics, validate
from .choice.choose import best, named_config, ranking
from .choice.shipped import SHIPPED, ShippedTable
from .choice.table import USER, UserTable
from .design import Designs, as_dict, imported_later, name_of, no_transform
from .errors import ConfigError, UnknownDesignError, UnsupportedError
from .operation import Operation, Served
from .operations.views import VIEWS
from .plans import WATCH, Plans, key_of, on_device
from .target import Target
from .watch import Watch, apart

KNOWN_CHOICES = 4096


@dataclass(eq=False)
class Library:
    package: str
    target: Callable[[torch.device], Target]  # of a tensor's device
    runs_on: Callable[[Any], None]  # raises DeviceError for a tensor that this library cannot run on
    misses: Callable[[Target], str | None] = lambda target: None  # why none of its designs runs on a target
    get_ready: Callable[[], Any] = lambda: None  # called before any design is imported
    switches: Callable[[], Any] = lambda: None  # global settings that a plan depends on
    compiler: Callable[[], str] = lambda: ""  # its name and minor version, for which tuned times hold
    build_for: Callable[[Target], None] = lambda target: None  # makes this process build for a GPU that it does not open
    build_seconds: Callable[[Any], float] = lambda launch: 0.0  # that launch.build() is expected to take
    tuned: UserTable = USER
    shipped: ShippedTable = SHIPPED
    plans: Plans = field(default_factory=Plans, repr=False)
    native: Any = field(default=None, repr=False)  # native/repeat.cpp's Repeats, once it is built
    operators: dict[str, Any] = field(default_factory=dict, repr=False)  # torch_ops' Operator, by the operation's name
    served: dict[str, Served] = field(default_factory=dict, repr=False)  # by the operation's name
    _designs: dict[str, Designs] = field(default_factory=dict, repr=False)
    _choices: dict = field(default_factory=dict, repr=False)  # of the last problems

    def serve(self, operation: Operation, **fields):
        """Add an operation, computed by the designs of its ladder. `fields` are the other fields of Served."""
        self.served[operation.name] = Served(operation, **fields)

    def operation(self, op) -> Operation:
        """The Operation named `op`."""
        return self._served(op).operation

    def _served(self, op):
        if op not in self.served:
            raise validate.out_of_choices("op", op, tuple(sorted((*self.served, *VIEWS))))
        return self.served[op]

    def names(self, op) -> tuple[str, ...]:
        """The names of the operation's designs, simplest first; imports none of them."""
        return tuple(rung.name for rung in self.operation(op).rungs(self.package))

    def designs(self, op) -> Designs:
        """The operation's designs, simplest first; each is in the file of its name. Of a view, those of its operation."""
        op = VIEWS[op].operation if op in VIEWS else op
        served = self._served(op)  # rejects an unknown operation
        if op not in self._designs:
            self.get_ready()
            self._designs[op] = Designs(self._loaded(served))
        return self._designs[op]

    def _loaded(self, served):
        operation = served.operation
        found = self._own(operation)
        for reduction in operation.reductions:
            lender = reduction.operation
            lent = self._own(lender, reduction.lends, True).values() if operation.own else self.designs(lender.name)
            for design in filter(reduction.lends, lent):
                found[operation.named(reduction, design.name)] = reduction.design(design, served.arrange)
        for rung in operation.rungs(self.package):
            design = found[rung.name]
            launches = design.launches if design.reads_split else _of_b_itself(design.launches)
            said = {"name": rung.name, "summary": rung.summary, "mirrors": rung.mirrors}
            yield dataclasses.replace(design, launches=launches, **said)

    def _own(self, operation, wanted=lambda rung: True, lent=False):
        """The operation's own designs of the `wanted` rungs, by name, each from the file of its name; imports no other, no
        lesson, and none that is `lent` to another operation."""
        found = {}
        for rung in operation.own:
            if rung.is_in(self.package) and wanted(rung):
                module = f"{self.package}.{operation.name}.{rung.name}"
                is_later = lent or rung.kind == "lesson"
                design = imported_later(module, rung.kind) if is_later else importlib.import_module(module).DESIGN
                key = f"{operation.name}.{rung.name}"
                found[rung.name] = dataclasses.replace(design, key=key, name=rung.name, kind=rung.kind)
        return found

    def choose(self, problem, target, design=None, config=None):
        """(design, config): the caller's own, else a tuned table's, else the one with the least predicted time. A config
        without a design is of the first in the ranking that has it."""
        if config is not None:
            return self._with_config(problem, target, design, config)
        if design is None and (tuned := self.from_tables(problem, target)):
            return tuned[:2]
        key = problem, target, design
        found = self._choices.get(key)
        if found is None:
            if len(self._choices) >= KNOWN_CHOICES:
                self._choices.clear()
            found = self._choices[key] = self._first(best, *key)
        return found

    def _with_config(self, problem, target, design, config):
        missing = None
        if design is None:
            designs = dict.fromkeys(choice.design for choice in self.ranking(problem, target))
        else:  # which needs no ranking
            designs = self._first(_having_configs, problem, target, design)
        for chosen in designs:
            try:
                return chosen, named_config(chosen, problem, target, config)
            except ConfigError as error:
                missing = missing or error
        raise missing

    def ranking(self, problem, target, design=None):
        """The Choices of the named design; or of all designs, without configs of another error bound than the operation's. The
        one that a call gets first, then by predicted time. UnsupportedError with all reasons if there is none."""
        return self._first(ranking, problem, target, design)

    def _first(self, rank, problem, target, design):
        """rank(package, the designs that may compute it, problem, target), where that finds any."""
        designs, design = self.designs(problem.op), name_of(design)
        if design is not None:
            named = [d for d in designs if d.name == design]
            if not named:
                raise self._unknown(problem.op, design)
            designs = named
        if unserved := self.misses(target):
            remedy = "Call tritonkernels for it, or name another target."
            raise UnsupportedError(f"{self.package} cannot compute anything on {target.name}: {unserved}", remedy=remedy)
        willing, _ = self._willing(problem, target, designs if design else _unasked(designs))
        found = rank(self.package, willing, problem, target)
        if found:
            return found
        _, refusals = self._willing(problem, target, designs)
        refusals = {d.name: f"none of {d.name}'s configs fits {target.name}" for d in designs} | refusals
        others = [d.name for d in self._willing(problem, target, self.designs(problem.op))[0] if d not in designs]
        named = f"Name one that can, {' or '.join(others)}, or none: then the fastest of them is chosen."
        remedy = named if others else "Change what they refuse, or leave this call to torch."
        raise UnsupportedError(f"{self.package}.{problem.op} cannot compute this on {target.name}", refusals, remedy)

    def _unknown(self, op, design):
        names = [d.name for d in self.designs(op)]
        near = self.operation(op).renamed(design, self.package) or validate.did_you_mean(design, names)
        remedy = f"{near} {self.package}.designs({op!r}) says what each does.".strip()
        return UnknownDesignError("design", repr(design), ", ".join(names), remedy)

    def _willing(self, problem, target, designs):
        """(those designs that compute it, {name: why} of those that refuse)."""
        refusals = {d.name: why for d in designs if (why := _refusal(d, problem, target)) is not None}
        return [d for d in designs if d.name not in refusals], refusals

    def candidates(self, problem, target):
        """([(design, config)] of what a call may get unasked, as ranked, {name: why} of designs that refuse)."""
        willing, refusals = self._willing(problem, target, self.designs(problem.op))
        return [choice[:2] for choice in ranking(self.package, _unasked(willing), problem, target)], refusals

    def from_tables(self, problem, target):
        """(design, config, by which table), the user's before the shipped one; None if the model decides, because the user's
        tuning found that best or because no table has what a call may get here."""
        for table, name in ((self.tuned, "tuned table"), (self.shipped, "shipped table")):
            entry = table.find(self.package, problem, target.name, self.compiler)
            if entry is None or (entry.design, entry.ms) == (None, None):  # the latter: tuning found nothing yet
                continue
            if entry.design is None:
                return None
            if found := self._legal(problem, target, entry):
                return *found, name
        return None

    def _legal(self, problem, target, entry):
        """The (design, config) of an Entry, or None if a call may not get it here."""
        for design in self.designs(problem.op):
            if design.name == entry.design and not design.is_lesson and _refusal(design, problem, target) is None:
                legal = (config for config in design.configs(problem, target) if as_dict(config) == entry.config)
                return next(((design, c) for c in legal if design.transform(entry.config) is None), None)
        return None

    def call(self, operation, design, config, arguments, unplain=None):
        """run(operation.prepare(**arguments), design, config); a repeated call runs its plan instead.

        arguments  all of a user function's, in its order, `out` last, which counts as modified for autograd
        unplain    (design, config, arguments, compute, key) -> the result of a call that may need more than compute(), what it
                   is without: it requires gradients; or, if `key` is None, arguments are of unknown classes or on the meta
                   device. Else `key` has all of the arguments but what is in their tensors, and whether they require gradients
        """
        key, tensors = key_of((operation.name, self.switches()), (design, config, *arguments.values()))
        if unplain and (key is None or _are_unplain(tensors)):
            compute = functools.partial(self._computed, key, tensors, operation, design, config, arguments)
            return unplain(design, config, arguments, compute, None if any(t.is_meta for t in tensors) else key)
        return self._computed(key, tensors, operation, design, config, arguments)

    def _computed(self, key, tensors, operation, design, config, arguments):
        plan = self.plans.find(key)
        is_plan = plan and plan is not WATCH
        result = plan.repeat(tensors) if is_plan else None
        if is_plan and self.native and plan.taught != self.native.cleared and arguments["out"] is None:
            plan.taught = self.native.cleared
            values = operation.name, self.switches(), design, config, *arguments.values()
            native.teach(self.native, values, plan, *self.operators[operation.name].recording(design, config, arguments))
        if result is None:
            result = self._unplanned(key, plan is WATCH, operation, design, config, arguments)
        if arguments["out"] is not None:
            torch.autograd.graph.increment_version(result)
        return result

    def forget_plans(self):
        """Repeated calls choose again."""
        self.plans = Plans()
        if self.native:
            self.native.clear()

    def _unplanned(self, key, watched, operation, design, config, arguments):
        """A call that has no plan; it gets one if it is `watched`."""
        if not watched:
            return self.run(operation.prepare(**arguments), design, config)
        arguments = apart(arguments)
        tensors = [value for value in arguments.values() if isinstance(value, torch.Tensor)]
        with Watch(tensors, arguments["out"]) as watch:
            result = self.run(operation.prepare(**arguments), design, config, watch.add_launch)
        if watch.disjoint:
            self.plans.keep(key, watch.plan(result))
            if native.is_for(result.device):
                native.serve(self)
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
        problem, transform = chosen.as_rounded(call.problem), chosen.transform(as_dict(config))
        return numerics.judge(problem, call.result, *args, transform=transform, **kwargs)


def _are_unplain(tensors):
    return any(tensor.is_meta or tensor.requires_grad for tensor in tensors) and (torch.is_grad_enabled() or tensors[0].is_meta)


def _refusal(design, problem, target):
    """Why a design does not compute a problem, in a sentence, or None."""
    if problem.is_gated and not design.gates:
        return f"it has no gated linear units, as {problem.activation} is one"
    return design.refuses(problem, target)


def _of_b_itself(launches):
    """`launches` of a design that reads no planes of a Split, which are a part's last two tensors."""

    def of_b(problem, config, *tensors, **taps):
        return launches(problem, config, *(tensors[:-2] if problem.b_split else tensors), **taps)

    return of_b


def _having_configs(package, designs, problem, target):
    return [d for d in designs if any(True for _ in d.configs(problem, target))]


def _unasked(designs):
    """The designs that a call may get without naming them: contenders within the operation's own error bound."""
    return [d for d in designs if d.transform is no_transform and not d.is_lesson]
