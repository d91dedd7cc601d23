"""A broken kernel: one edit of one file, a slip that gives wrong results silently."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    name: str
    path: str
    old: str  # must stand in the file exactly once
    new: str
    tests: str  # what must notice: an expression for pytest -k, over the suite named in run.py

    def broken(self, folder):
        """The file's text in a copy of the tree, with the edit."""
        text = (folder / self.path).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: its text stands {text.count(self.old)} times in {self.path}")
        return text.replace(self.old, self.new)

    def digest(self):
        """A hash of the broken file: an outcome is current while it is unchanged."""
        return hashlib.sha256(self.broken(ROOT).encode()).hexdigest()[:16]


def of(path, tests, *edits):
    """Mutants of a file: (name, old, new) each."""
    design = path.rpartition(".")[0].replace("/", ".")
    return [Mutant(f"{design}: {name}", path, old, new, tests) for name, old, new in edits]
