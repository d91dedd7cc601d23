"""What designs sustain of a GPU's figures, as records say: shares, and factors of configs and of classes of problems.

They are data, which `python -m perf fit` writes, a file for each operation of a package. The model of time (model.py) divides
by the shares and multiplies by the factors. Those of Hopper, fitted to the records of all its GPUs, serve every GPU.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import BackendError
from ..target import Target
from .work import KNOWN, kept

TABLES = Path(__file__).with_name("tables")
REFERENCE = "h200"  # whose shares serve GPUs without records
ANY = "any"  # the key of a design that is not in the records
PARTS = ("compute", "cache", "memory", "latency", "epilogue", "launch")  # of a kernel's time
SHARES = (*PARTS, "next_launch")


@dataclass(frozen=True)
class Sustained:
    """A design's figures: what it sustains of the figures, by SHARES, and factors of its time.

    next_launch  of the launches of a call's further kernels, which the host prepares while the first one runs
    factors   {"config BM=128 ...": 1.1, "precision tf32": 0.9, "a_layout row b_layout col: config BM=128 ...": 1.2, ...}: times
              of such configs and problems, and of such configs on operands that lie so, relative to the rest
    unseen    the factor of a config without records
    timed     whether records have the design in this precision: then a config that has a factor was timed, in some precision
    """

    compute: float
    cache: float
    memory: float
    latency: float
    epilogue: float
    launch: float
    next_launch: float
    factors: dict[str, float] = field(default_factory=dict, hash=False)
    unseen: float = 1.0
    timed: bool = False

    def __post_init__(self):  # a method's cache would hash all fields at each call
        object.__setattr__(self, "of_config", functools.lru_cache(KNOWN)(self.of_config))

    @functools.cached_property
    def shares(self):
        """By SHARES."""
        return tuple(getattr(self, name) for name in SHARES)

    def of_problem(self, problem):
        """The factors of a problem's classes: of its kernels' time, and of their epilogues."""
        return tuple(math.prod(self.factors.get(name, 1.0) for name in names) for names in classes(problem))

    def of_config(self, config, layouts=""):
        """(a config's factor on operands of these `layouts_of`, whether it was timed). One without records gets the factor of a
        slow one: of many that are only guessed, the best guess is too good."""
        name = _name(config)
        factor = self.factors.get(name, self.unseen) * self.factors.get(in_layouts(name, layouts), 1.0)
        return factor, self.timed and name in self.factors


LAYOUTS = ("a_layout", "b_layout")  # fields of a problem: how well a tile loads depends on both


@functools.lru_cache(256)
def layouts_of(problem):
    """How the operands of a product lie, "a_layout row b_layout col"; "" of other problems."""
    return " ".join(f"{name} {getattr(problem, name)}" for name in LAYOUTS if hasattr(problem, name))


def in_layouts(name, layouts):
    """The name of the factor that a config of this name has on such operands."""
    return f"{layouts}: {name}"


def is_in_layouts(name):
    """Whether a factor of this name is such a one."""
    return ": config" in name


AFTER_THE_SUMS = ("bias", "residual", "activation")  # classes that count in a kernel's epilogue only


@functools.lru_cache(256)
def classes(problem):
    """(the names of the problem's classes, of those of its epilogue): its facts that are no sizes. Sizes are in its Work."""
    facts = problem.facts
    return tuple([f"{name} {facts[name]}" for name in names if name in facts] for names in _class_fields(type(problem)))


@functools.cache
def _class_fields(kind):
    names = [f.name for f in dataclasses.fields(kind) if f.type in (str, bool) and f.name not in AFTER_THE_SUMS]
    return names, [f.name for f in dataclasses.fields(kind) if f.name in AFTER_THE_SUMS]


def is_of_epilogue(name):
    """Whether a factor of this name is."""
    return name.startswith(AFTER_THE_SUMS)


def own_numbers(config):
    """{name: value} of a config, without those that follow from the problem or the GPU."""
    if isinstance(config, dict):
        numbers = config
    else:  # a triton.Config; its all_kwargs() takes as long as the rest of an estimate
        numbers = config.kwargs | {"num_warps": config.num_warps, "num_stages": config.num_stages, "maxnreg": config.maxnreg}
    return {name: value for name, value in numbers.items() if name not in DEPENDENT}


def config_name(config):
    """The config as a key of factors."""
    return " ".join(["config", *[f"{name}={value}" for name, value in own_numbers(config).items()]])


_name = kept(config_name)

DEPENDENT = ("PROGRAMS", "BLOCKS", "WAVES", "SPLIT_K", "SPLITS", "STREAMS")


ALIKE = {"bf16": "fp16"}  # the same bytes and instructions: the times of either are times of both
# Until records have a design in a precision, its figures are those of another, in which it does the same: a wgmma of tf32 takes
# as long as one of 16 bits, of as many bytes and half the elements
STAND_INS = {("conv2d.warp_specialized", "tf32"): "fp16"}


def alike(precision):
    """The precision under which a design's figures in this one are."""
    return ALIKE.get(precision, precision)


def key_of(package, design, precision):
    """The key of a design's figures: "tritonkernels matmul.tiled fp16"."""
    return f"{package} {design} {alike(precision)}"


def of_design(figures, package, design, precision):
    """The Sustained of a design in a precision, in its stand-in, in all, or of any design, whatever there are records of."""
    precisions = precision, STAND_INS.get((design, precision), precision)
    keys = *(key_of(package, design, each) for each in precisions), f"{package} {design}"
    return figures[next((key for key in keys if key in figures), ANY)]


class Figures(Mapping):
    """{"package op.design precision": Sustained} of a folder of tables, also of designs in all precisions and of ANY. A file,
    PACKAGE.OPERATION.json, is read when one of its designs is asked for."""

    def __init__(self, folder):
        self._folder, self._known = folder, {}
        self._table = functools.cache(self._read)

    def _read(self, name):
        path = self._folder / name
        return json.loads(path.read_text()) if path.exists() else {"names": {}, "designs": {}}

    def __getitem__(self, key):
        if key not in self._known:
            table = self._table(file_of(key))
            values, names = table["designs"][key], table["names"][" ".join(key.split()[:2])]
            factors = {name: factor for name, factor in zip(names, values["factors"]) if factor is not None}
            self._known[key] = Sustained(**values | {"factors": factors})
        return self._known[key]

    def __contains__(self, key):
        return key in self._table(file_of(key))["designs"]

    def __iter__(self):
        return (key for path in sorted(self._folder.glob("*.json")) for key in self._table(path.name)["designs"])

    def __len__(self):
        return sum(1 for _ in self)


def file_of(key):
    """The name of the file that has a design's figures."""
    return key.partition(".")[0].replace(" ", ".") + ".json"


@functools.cache
def sustained(target_name):
    """The Figures that serve a GPU: those of the REFERENCE unless it has its own."""
    return Figures(TABLES / folder(target_name) / "sustained")


def folder(target_name):
    """The folder of the figures that serve a GPU."""
    name = gpu_name(target_name)
    return name if (TABLES / name / "sustained").exists() else REFERENCE


@functools.cache
def gpu_name(name):
    """What the folder of a GPU's tables is called: its name in the table of targets, or the driver's if it is not there."""
    try:
        return Target.named(name).name
    except BackendError:
        return name
