"""A broken kernel: one edit of one file, the kind of slip that hurts users in silence."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    path: str
    old: str  # must stand in the file exactly once
    new: str
    tests: str  # what must notice: an expression for pytest -k, over the suite named in run.py
    fast: bool = False  # part of `make test`; `make mutants` runs all


def of(path, tests, *edits):
    """Mutants of a file: (name, old, new) each, and True for the fast ones."""
    design = path.rpartition(".")[0].replace("/", ".")
    return [Mutant(f"{design}: {edit[0]}", path, edit[1], edit[2], tests, *edit[3:]) for edit in edits]
