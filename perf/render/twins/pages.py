"""Which designs have a twin page, the files on it, and how pages and docs link to each other."""

import re
from dataclasses import dataclass
from pathlib import Path

from tritonkernels import OPS
from tritonkernels.launch import LIBRARY
from tritonkernels.operation import Rung

from ... import ROOT
from .. import chapter

FILES = {  # anchor on the page: the file
    "triton": "tritonkernels/{}/{}.py",
    "cuda": "cuda_reference/{}/{}.cuh",
    "cuda-launch": "cuda_reference/{}/{}.py",
}


@dataclass(frozen=True)
class Twin:
    """A design of an operation, in the packages that have it."""

    op: str
    rung: Rung

    @property
    def address(self):
        """The path of the page, relative to the folder of all pages."""
        return f"{self.op}/{self.rung.name}.html"

    @property
    def files(self):
        """{anchor: path} of those that exist."""
        files = {anchor: ROOT / path.format(self.op, self.rung.name) for anchor, path in FILES.items()}
        return {anchor: path for anchor, path in files.items() if path.exists()}

    @property
    def neighbours(self):
        """The designs before and after it in the ladder of its operation; None at the ends."""
        ladder = [None, *of(self.op), None]
        at = ladder.index(self)
        return ladder[at - 1], ladder[at + 1]

    @property
    def before(self):
        """The design that it builds on: the one that the chapter names, else the one that its summary begins with, as
        in "warp_per_row with 128-bit loads", else its neighbour; None for the first."""
        named = {name: before for before, name in chapter.rungs(self.op)}
        twins = {twin.rung.name: twin for twin in of(self.op)}
        if self.rung.name in named:
            return twins.get(named[self.rung.name])
        return twins.get(self.rung.summary.partition(" ")[0], self.neighbours[0])

    def before_with(self, anchor):
        """The nearest design that it builds on and that has such a file: some are written in one language only."""
        before = self.before
        while before and anchor not in before.files:
            before = before.before
        return before

    @property
    def chapter(self):
        """(name, anchor) of the page of the docs that treats it."""
        name = self.op.partition("_")[0]
        heading = re.search(rf"^#+ {self.rung.name}$", (chapter.DOCS / f"{name}.md").read_text(), re.MULTILINE)
        return name, f"#{self.rung.name}" if heading else ""


def of(op):
    """The Twins of an operation, in the order in which techniques build on each other."""
    return [Twin(op, rung) for rung in LIBRARY.operation(op).own]


def by_operation():
    """{operation: its Twins} of those with designs of their own."""
    return {op: of(op) for op in OPS if of(op)}


def every():
    return [twin for twins in by_operation().values() for twin in twins]


def of_source(path):
    """The address of the page of a design's file, with its anchor there; None for other files. Paths are relative to the
    repository, addresses to the folder of all pages."""
    addresses = {file: f"{twin.address}#{anchor}" for twin in every() for anchor, file in twin.files.items()}
    return addresses.get(ROOT / Path(path))
