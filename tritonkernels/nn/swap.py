"""Swapping the modules of a model: which ones, and the table that says why."""

import copy
from typing import NamedTuple

import torch
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree

from .. import validate
from ..choice import torch_times
from ..errors import ArgumentError, BackendError, TritonKernelsError
from ..problem import FLOAT_PRECISION, dtype_name
from ..report import as_html, plain
from ..target import Target

HEADINGS = ("module", "kind", "outcome", "ours, us", "torch, us", "why")


class Swap(NamedTuple):
    """A module of a model: what became of it. Times are of its calls with the example inputs, predicted."""

    name: str  # in the model, or all its names
    kind: str
    swapped: bool
    ours_us: float | None
    torch_us: float | None
    why: str

    @property
    def cells(self):
        times = ("" if us is None else f"{us:.1f}" for us in (self.ours_us, self.torch_us))
        return [self.name or "(the model)", self.kind, "swapped" if self.swapped else "left", *times, self.why]


class Swaps(list):
    """The Swap of each Linear and Conv2d of a model, in its order; a table where it is printed, in a notebook too."""

    def __str__(self):
        return plain(HEADINGS, [row.cells for row in self])

    def _repr_html_(self):
        return as_html([dict(zip(HEADINGS, row.cells)) for row in self])

    def __rich__(self):
        from rich.table import Table

        table = Table(*HEADINGS, box=None, pad_edge=False)
        for row in self:
            table.add_row(*row.cells)
        return table


class Verdict(NamedTuple):
    swapped: bool
    why: str
    ours: float | None = None  # seconds
    torchs: float | None = None


def swap(model, kinds, library, precision, only_where_faster, inputs, target):
    """nn.replace, for a package's own classes and library."""
    accepted = tuple(dict.fromkeys(name for kind in kinds for name in kind.precisions))
    if precision is not None:
        validate.choice("precision", precision, accepted)
    found = {}  # module -> (its names, its kind): a shared module has several names
    for name, module in model.named_modules(remove_duplicate=False):
        if kind := next((kind for kind in kinds if isinstance(module, kind.torchs)), None):
            found.setdefault(module, ([], kind))[0].append(name)
    refusals = {module: refusal(module, kind, precision) for module, (_, kind) in found.items()}
    willing = {module: kind for module, (_, kind) in found.items() if refusals[module] is None}
    verdicts = {module: Verdict(False, why) for module, why in refusals.items() if why}
    if only_where_faster:
        target = named(target)
        calls = calls_of(model, willing, precision, inputs) if inputs is not None else None
        for module in willing:
            verdicts[module] = verdict(module, calls and calls[module], library, target)
    else:
        verdicts |= {module: Verdict(True, "asked for") for module in willing}
    rows = Swaps()
    for module, (names, kind) in found.items():
        swapped, why, *seconds = verdicts[module]
        title = type(module).__name__
        if swapped:
            module.__class__, module.precision = kind, precision
        rows.append(Swap(", ".join(names), title, swapped, *(s and 1e6 * s for s in seconds), why))
    return rows


def refusal(module, kind, precision):
    """Why a module cannot be swapped at all, or None."""
    if type(module) is not kind.torchs:
        return f"already {kind.__module__}.{kind.__name__}" if type(module) is kind else "a subclass"
    if "forward" in vars(module):
        return "its forward is replaced"
    if module.weight.dtype not in FLOAT_PRECISION:
        return f"{dtype_name(module.weight.dtype)} weights"
    if module.weight.dtype == torch.float32 and precision not in (None, *kind.precisions):
        return f"{kind.operation.name} has no precision {precision}"
    return None


def named(target):
    try:
        return Target.named(target) if isinstance(target, str) else target
    except BackendError as error:
        raise ArgumentError("target", repr(target), "a GPU of the table of targets", str(error)) from error


def calls_of(model, willing, precision, inputs):
    """{module: the (Problem here, Problem in torch's precision), or the error, of each of its calls} in one forward."""
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (inputs if isinstance(inputs, tuple) else (inputs,), {})
    calls = {module: [] for module in willing}

    def noting(module, kind):
        def note(_, args, kwargs):
            (input,) = (*args, *kwargs.values())
            try:
                calls[module].append(tuple(problem(kind, copied[module], input, mode) for mode in (precision, "torch")))
            except TritonKernelsError as error:
                calls[module].append(error)

        return note

    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            state = {id(t): without_data(t) for t in (*model.parameters(), *model.buffers())}
            copied = dict(zip(model.modules(), copy.deepcopy(model, state).modules()))
            for module, kind in willing.items():
                copied[module].register_forward_pre_hook(noting(module, kind), with_kwargs=True)
            args, kwargs = pytree.tree_map_only(torch.Tensor, without_data, (args, kwargs))
            copied[model](*args, **kwargs)
    except Exception as error:  # whatever the model's own forward raises
        allowed = "inputs on which a copy of the model runs, with fake tensors"
        raise ArgumentError(
            "inputs", f"{type(error).__name__}: {error}", allowed, "Or pass only_where_faster=False."
        ) from error
    return calls


def without_data(tensor):
    """A fake tensor of the same form."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def problem(kind, module, input, precision):
    """The Problem of a module's call."""
    args, kwargs = kind.arguments(module, input, precision)
    return kind.operation.prepare(*args, **kwargs).problem


def verdict(module, calls, library, target):
    """Whether a module that can be swapped is, by predicted times."""
    if target is None:
        if module.weight.device.type != "cuda":
            return Verdict(False, f"on {module.weight.device.type}: nothing says what is faster there")
        target = library.target(module.weight.device)
    if not torch_times.times(target.name):
        return Verdict(False, f"no recorded times of torch on {target.name}")
    if calls is None:
        return Verdict(False, "sizes are unknown: pass inputs=")
    if not calls:
        return Verdict(False, "not called with these inputs")
    if errors := [call for call in calls if isinstance(call, TritonKernelsError)]:
        return Verdict(False, str(errors[0]))
    try:
        ours = sum(library.ranking(own, target)[0].cost for own, _ in calls)
    except TritonKernelsError as error:
        return Verdict(False, str(error))
    torchs = [torch_times.predicted(theirs, target) for _, theirs in calls]
    if None in torchs:
        return Verdict(False, f"no recorded time of torch near its sizes on {target.name}", ours)
    total, scatter = sum(time.seconds for time in torchs), max(time.scatter for time in torchs)
    word = "slower" if ours > total else "faster" if ours * scatter <= total else "as fast"
    return Verdict(word == "faster", f"predicted {word}; torch's time within a factor of {scatter:.2f}", ours, total)
