"""The user's tuned table: which design and config was the fastest, per package, operation, GPU and class of problems.

A UserFile: the first choice in a process reads it, later ones touch no file. It only selects among the configs that are legal
anyway.
"""

import dataclasses
import functools
import json
import logging
from dataclasses import dataclass

import torch

from ..problem import dtype_name
from ..user_file import TABLE, UserFile, checked

SCHEMA = 1
EXACT_TO = 16  # sizes up to here are in a key as they are
EXACT = ("groups",)  # an int that is no size: designs take groups of one channel, or of several

log = logging.getLogger("tritonkernels")


def class_of(problem):
    """The problem's fields as a key has them, {name: JSON value}: sizes and scalars by class, all others as they are."""
    chunk = 16 // problem.dtype.itemsize
    kinds = {f.name: f for f in dataclasses.fields(problem)}
    return {name: _value(kinds[name], value, chunk) for name, value in problem.facts.items()}


def _value(field, value, chunk):
    if field.type is int and field.name not in EXACT:
        return size_class(value, chunk)
    if field.type is float:
        return f"{value:g}" if value in (0, 1) else "other"
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    return list(value) if isinstance(value, tuple) else value


def size_class(size, chunk):
    """The nearest power of two times 1, 1.25, 1.5 or 1.75, and whether the size is a multiple of `chunk`, the elements of a
    16-byte access: 4000 halves are "~4096 by 8", 4097 "~4096"."""
    if size <= EXACT_TO:
        return str(size)
    step = 1 << (size.bit_length() - 3)
    return f"~{(size + step // 2) // step * step}" + (f" by {chunk}" if size % chunk == 0 else "")


@functools.lru_cache(4096)
def class_text(problem):
    """class_of as a key has it."""
    return json.dumps(class_of(problem))


@dataclass(frozen=True)
class Entry:
    """What tuning found for a class of problems.

    compiler  whose code was timed: "Triton 3.7", "CUDA 13.0"; to another, the entry is a miss
    design    with `config` the fastest; None: the choice without the table
    ms, default_ms  median times of the fastest and of the choice without the table; None: not known yet, or it failed
    tried     unless tuning is finished: [design, config, time relative to the first, or what was wrong] of each candidate
    """

    package: str
    op: str
    gpu: str
    compiler: str
    problem: dict
    design: str | None = None
    config: dict = dataclasses.field(default_factory=dict)
    ms: float | None = None
    default_ms: float | None = None
    date: str = ""
    tried: list = dataclasses.field(default_factory=list)

    @property
    def key(self):
        return self.package, self.op, self.gpu, json.dumps(self.problem)

    @staticmethod
    def of(values):
        """From JSON; ValueError if it is no entry."""
        entry = checked(Entry, values)
        if not all(isinstance(t, list) and [type(x) for x in t[:2]] == [str, dict] and len(t) == 3 for t in entry.tried):
            raise ValueError("tried is no list of [design, config, outcome]")
        return entry


class UserTable:
    """The table's entries in this process, by key and compiler."""

    def __init__(self):
        self._file, self._warned = UserFile(TABLE, "the tuned table", SCHEMA, by_key, _listed), False
        self.path = self._file.path

    def find(self, package, problem, gpu, compiler):
        """The Entry, or None; compiler() is its name, needed only if there may be one."""
        entries = self._file.content()
        found = entries and entries.get((package, problem.op, gpu, class_text(problem)))
        if not found:
            return None
        current = compiler()
        if current not in found and not self._warned:
            self._warned = True
            log.warning(
                "tritonkernels: a tuned choice of %s on %s was timed with %s, not with %s, and is not used. "
                '%s.tune("%s", ...) on the operands renews it, '
                "and so does tritonkernels tune %s --shapes FILE (in a checkout: python -m perf tune)",
                *(problem.op, gpu, ", ".join(found), current, package, problem.op, problem.op),
            )
        return found.get(current)

    def store(self, entry):
        """Add the entry to the file, in place of one of its key and compiler; TuningError if that is impossible."""

        def with_it(entries):
            entries.setdefault(entry.key, {})[entry.compiler] = entry
            return entries

        self._file.change(with_it)


def by_key(entries):
    """{key: {compiler: Entry}} of the file's entries."""
    found = {}
    for entry in map(Entry.of, entries):
        found.setdefault(entry.key, {})[entry.compiler] = entry
    return found


def _listed(found):
    return [vars(entry) for versions in found.values() for entry in versions.values()]


USER = UserTable()
