"""The way of a call, shared by both packages: Problem -> Design -> Config -> launches -> result, or short: Plan -> result.

A Library is a package that holds, per operation, a subpackage with an ordered tuple DESIGNS. `tritonkernels` and
`cuda_reference` are the two; they differ in where they run (target, serves) and in nothing else.
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
from .design import Design
from .errors import UnknownDesignError, UnsupportedError
from .plans import WATCH, Plans, key_of, on_device
from .problem import Problem
from .report import Report
from .target import Target
from .tuning.choose import as_dict, choose_config
from .watch import Watch

OPS = ("gemm", "gemv", "conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias", "matmul")


@dataclass(frozen=True)
class Call:
    """A validated call: the problem, the operands as kernels take them, and the result to return.

    `parts` are the tensors of one launch each, result last; there are several only where a batch has no single stride.
    """

    problem: Problem
    parts: tuple[tuple[torch.Tensor | None, ...], ...]
    result: torch.Tensor


@dataclass(frozen=True)
class Library:
    package: str
    target: Callable[[torch.device], Target]  # the machine behind a tensor's device
    serves: Callable[[Any], None]  # raises DeviceError for a tensor that this library cannot run on
    get_ready: Callable[[], Any] = lambda: None  # before any design is imported
    switches: Callable[[], Any] = lambda: None  # what may change from call to call and is no argument
    plans: Plans = field(default_factory=Plans, repr=False, compare=False)

    def _entries(self, op):
        """DESIGNS of the operation's subpackage: Designs, or names of modules that hold one (and import Triton)."""
        if op not in OPS:
            raise validate.out_of_choices("op", op, OPS)
        return importlib.import_module(f"{self.package}.{op}").DESIGNS

    def names(self, op) -> tuple[str, ...]:
        """The names of the operation's designs, simplest first; imports none of them."""
        return tuple(entry if isinstance(entry, str) else entry.name for entry in self._entries(op))

    def designs(self, op) -> tuple[Design, ...]:
        """The operation's designs, simplest first. An operation that reduces to another takes that one's `through` its own."""
        self.get_ready()
        package = importlib.import_module(f"{self.package}.{op}") if op in OPS else None
        if of := getattr(package, "REDUCES_TO", None):
            return tuple(package.through(design) for design in self.designs(of))
        return tuple(
            importlib.import_module(f"{self.package}.{op}.{entry}").DESIGN if isinstance(entry, str) else entry
            for entry in self._entries(op)
        )

    def choose(self, problem, target, design=None, config=None):
        """(design, config): the named design, or the preferred one of those that do not refuse."""
        known = self.designs(problem.op)
        if design is not None:
            named = [d for d in known if d.name == design]
            if not named:
                raise UnknownDesignError("design", repr(design), ", ".join(d.name for d in known))
            known = named
        refusals = {d.name: d.refuses(problem, target) for d in known}
        willing = [d for d in known if refusals[d.name] is None]
        if not willing:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in refusals.items())
            raise UnsupportedError(f"{self.package}.{problem.op} cannot compute this on {target.name}: {reasons}")
        chosen = self._preferred(problem, target, willing)
        return chosen, choose_config(chosen, problem, target, config)

    def _preferred(self, problem, target, willing):
        """The first design that the operation's own rule names, one or several; without a rule the last of the ladder."""
        prefer = getattr(importlib.import_module(f"{self.package}.{problem.op}"), "prefer", None)
        wanted = prefer(problem, target) if prefer else ()
        by_name = {d.name: d for d in willing}
        return next((by_name[n] for n in ([wanted] if isinstance(wanted, str) else wanted) if n in by_name), willing[-1])

    def _predicted(self, problem, target, chosen, config):
        """What the analysis says of a blocked product, or the operation's own rule of its design; None without either."""
        if chosen.tile and target.is_gpu:
            return predict(problem, chosen.tile(config), target)
        expected = getattr(importlib.import_module(f"{self.package}.{problem.op}"), "expected", None)
        told = expected(chosen.name, problem, target) if expected else None
        return dataclasses.asdict(told) if told else None

    def call(self, prepare, *, design, config, **arguments):
        """run(prepare(**arguments), design, config), or what is left of it where a call like it was made before.

        The arguments are a user function's own, all of them, in its order, in which `out` is the last for `prepare`. What torch
        knows of tensors and no kernel sees is kept here: no tangent is dropped, and `out` counts as modified.
        """
        validate.no_transform(arguments)
        result = self._call(prepare, design, config, arguments)
        if arguments["out"] is not None:
            torch.autograd.graph.increment_version(result)
        return result

    def _call(self, prepare, design, config, arguments):
        key, tensors = key_of((prepare, self.switches()), (design, config, *arguments.values()))
        plan = self.plans.find(key)
        if plan is not WATCH:
            result = plan.repeat(tensors) if plan else None
            return self.run(prepare(**arguments), design, config) if result is None else result
        with Watch(tensors) as watch:
            result = self.run(prepare(**arguments), design, config, watch.saw)
        if watch.tells_apart:
            self.plans.keep(key, watch.plan(result, arguments["out"] is not None))
        return result

    def run(self, call, design=None, config=None, saw=lambda launched: None):
        """Do the call and return its result; `saw` is told of each launch, as Launched."""
        self.serves(call.result)
        chosen, config = self.choose(call.problem, self.target(call.result.device), design, config)
        if call.result.numel():
            with on_device(call.result.device):
                for tensors in call.parts:
                    for launch in chosen.launches(call.problem, config, *tensors):
                        saw(launch.run())
        return call.result

    def judge(self, call, design, config, *args, **kwargs):
        """numerics.judge of the result that run(call, design, config) left, by the bound that holds for the two."""
        chosen, config = self.choose(call.problem, self.target(call.result.device), design, config)
        return numerics.judge(call.problem, call.result, *args, transform=chosen.transform(as_dict(config)), **kwargs)

    def explain(self, op, *args, design=None, config=None, target=None, **kwargs):
        """What `run` would do, without doing it."""
        self._entries(op)  # rejects an unknown operation
        call = importlib.import_module(f"tritonkernels.{op}").prepare(*args, **kwargs)
        if target is None:
            self.serves(call.result)
            target = self.target(call.result.device)
        elif isinstance(target, str):
            target = Target.named(target)
        problem = call.problem
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
