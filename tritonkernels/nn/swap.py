"""Swapping the modules of a model: which ones, and the table that says why."""

from typing import NamedTuple

import torch

from .. import validate
from ..numerics import MODES
from ..problem import FLOAT_PRECISION, dtype_name
from ..report import as_html, plain
from .judge import Verdict, judge

HEADINGS = ("module", "kind", "outcome", "ours, us", "torch, us", "why")


class Swap(NamedTuple):
    """A module of a model: what became of it. Times are measured, of all its calls with the example inputs."""

    name: str  # in the model, or all its names
    kind: str
    swapped: bool
    ours_us: float | None
    torch_us: float | None
    why: str

    @property
    def cells(self) -> list[str]:
        times = ("" if us is None else f"{us:.1f}" for us in (self.ours_us, self.torch_us))
        return [self.name or "(the model)", self.kind, "swapped" if self.swapped else "left", *times, self.why]


class Swaps(list[Swap]):
    """The Swap of each module of these kinds in a model, in its order; a table where it is printed, in a notebook too."""

    whole: Swap | None = None  # of the whole model, if it was timed; the table's last row

    @property
    def body(self) -> list[list[str]]:
        return [row.cells for row in (*self, self.whole) if row]

    def __str__(self) -> str:
        return plain(HEADINGS, self.body)

    def _repr_html_(self) -> str:
        return as_html([dict(zip(HEADINGS, cells)) for cells in self.body])

    def __rich__(self):
        from rich.table import Table

        table = Table(*HEADINGS, box=None, pad_edge=False)
        for cells in self.body:
            table.add_row(*cells)
        return table


def swap(model, kinds, precision, only_where_faster, inputs, budget, cache_split=False, clock=None) -> Swaps:
    """nn.replace, for a package's own classes; `clock` is the GPU's."""
    accepted = tuple(dict.fromkeys(name for kind in kinds for name in kind.precisions))
    if precision is not None:
        validate.choice("precision", precision, accepted, MODES)
    validate.seconds("budget", budget)
    found = {}  # module -> (its names, its kind): a shared module has several names
    for name, module in model.named_modules(remove_duplicate=False):
        if kind := next((kind for kind in kinds if isinstance(module, kind.torchs)), None):
            found.setdefault(module, ([], kind))[0].append(name)
    refusals = {module: refusal(module, kind, precision) for module, (_, kind) in found.items()}
    willing = {module: kind for module, (_, kind) in found.items() if refusals[module] is None}
    options = {"precision": precision, "cache_split": cache_split}
    verdicts, whole = {module: Verdict(False, why) for module, why in refusals.items() if why}, None
    if only_where_faster:
        own, whole = judge(model, willing, options, inputs, budget, clock)
        verdicts |= own
    else:
        verdicts |= {module: Verdict(True, "asked for") for module in willing}
    rows = Swaps()
    rows.whole = whole and Swap("", type(model).__name__, **whole._asdict())
    for module, (names, kind) in found.items():
        rows.append(Swap(", ".join(names), type(module).__name__, **verdicts[module]._asdict()))
        if verdicts[module].swapped:
            kind.adopt(module, options)
    return rows


def refusal(module, kind, precision):
    """Why a module cannot be swapped at all, or None."""
    if type(module) is not kind.torchs:
        return f"already {kind.__module__}.{kind.__name__}" if type(module) is kind else "a subclass"
    if "forward" in vars(module):
        return "its forward is replaced"
    if not is_ordinary(module.weight):
        return f"its weight is a {type(module.weight).__name__}, which may know torch's operators alone"
    if module.weight.dtype not in FLOAT_PRECISION:
        return f"{dtype_name(module.weight.dtype)} weights"
    if module.weight.dtype == torch.float32 and precision not in (None, *kind.precisions):
        return f"{kind.operation.name} has no precision {precision}"
    return kind.refuses(module)


def is_ordinary(tensor):
    """Whether it is of a class whose tensors our operators take: torch's own, or one that torch simulates or shards."""
    kind = type(tensor)
    known = kind.__module__.startswith(("torch._subclasses.", "torch.distributed."))
    return kind in (torch.Tensor, torch.nn.Parameter) or known


def restore(model, kinds) -> list[str]:
    """nn.restore, for a package's own classes."""
    names = [name for name, module in model.named_modules() if type(module) in kinds]
    for name in names:
        module = model.get_submodule(name)
        type(module).leave(module)
    return names
