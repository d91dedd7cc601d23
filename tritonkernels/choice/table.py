"""The user's tuned table: which design and config was the fastest, per package, operation, GPU and class of problems.

One readable JSON file, tuning.json in the cache folder (private.py). TRITONKERNELS_TUNING names another file, or is "off". The
first choice in a process reads it, later ones touch no file. It is data, never code, and it only selects among the configs that
are legal anyway. Still, a file that others can write, that is damaged or has another schema is refused, with one warning.
"""

import dataclasses
import functools
import json
import logging
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import torch

from .. import private
from ..errors import CacheError, TuningError
from ..problem import dtype_name

SCHEMA = 1
FILE = "tuning.json"
EXACT_TO = 16  # sizes up to here are in a key as they are
EXACT = ("groups",)  # an int that is no size: designs take groups of one channel, or of several
LOCK_SECONDS = 10

log = logging.getLogger("tritonkernels")


def class_of(problem):
    """The problem's fields as a key has them, {name: JSON value}: sizes and scalars by class, all others as they are."""
    chunk = 16 // problem.dtype.itemsize
    return {f.name: _value(f, getattr(problem, f.name), chunk) for f in dataclasses.fields(problem)}


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
def _class_text(problem):
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
        fields = dataclasses.fields(Entry)
        if not isinstance(values, dict) or values.keys() != {f.name for f in fields}:
            raise ValueError(f"an entry needs the fields {', '.join(f.name for f in fields)}, and no others")
        for field in fields:
            if not isinstance(values[field.name], field.type) or isinstance(values[field.name], bool):
                raise ValueError(f"{field.name} is {values[field.name]!r:.40}")
        if not all(isinstance(t, list) and [type(x) for x in t[:2]] == [str, dict] and len(t) == 3 for t in values["tried"]):
            raise ValueError("tried is no list of [design, config, outcome]")
        return Entry(**values)


class UserTable:
    """The table's entries in this process, by key and compiler."""

    def __init__(self):
        self._entries, self._lock, self._warned = None, threading.Lock(), False

    def find(self, package, problem, gpu, compiler):
        """The Entry, or None; compiler() is its name, needed only if there may be one."""
        if self._entries is None:
            self._read()
        found = self._entries and self._entries.get((package, problem.op, gpu, _class_text(problem)))
        if not found:
            return None
        current = compiler()
        if current not in found and not self._warned:
            self._warned = True
            log.warning(
                "tritonkernels: a tuned choice of %s on %s was timed with %s, not with %s, and is not used. "
                '%s.tune("%s", ...) on the operands, or python -m perf tune %s --shapes FILE, renews it',
                *(problem.op, gpu, ", ".join(found), current, package, problem.op, problem.op),
            )
        return found.get(current)

    def store(self, entry):
        """Add the entry to the file, in place of one of its key and compiler; TuningError if that is impossible."""
        from filelock import FileLock, Timeout  # torch needs it too; imported here, so that importing the package stays cheap

        path = self.path()
        try:
            with FileLock(f"{path}.lock", mode=0o600).acquire(timeout=LOCK_SECONDS):
                entries = _entries_of(path)
                entries.setdefault(entry.key, {})[entry.compiler] = entry
                _replace(path, entries)
        except Timeout:
            raise TuningError(f"another process has held {path}.lock for {LOCK_SECONDS} s: end it, and tune again.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise TuningError(f"the tuned table cannot be written: {_said(path, error)}") from error
        self._entries = entries

    def path(self):
        """The file to write; TuningError if there is none."""
        try:
            path = _path(private.folder)
        except CacheError as error:
            raise TuningError(f"the tuned table cannot be written: {error}") from error
        if path is None:
            raise TuningError("TRITONKERNELS_TUNING is off, so nothing can be kept: unset it, or set it to a file.")
        return path

    def _read(self):
        with self._lock:
            if self._entries is not None:
                return
            path, entries = None, {}
            try:
                path = _path(private.location)
                if path is not None:
                    entries = _entries_of(path)
            except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: nested too deeply
                if path is not None:  # else there is no home folder, and nothing to read
                    log.warning("tritonkernels: the tuned table is not used: %s", _said(path, error))
            self._entries = entries


def _path(folder):
    """The file, in folder() unless the user names another; None if there is to be none."""
    setting = os.environ.get("TRITONKERNELS_TUNING", "").strip()
    if setting.lower() == "off":
        return None
    return Path(setting).absolute() if setting else folder() / FILE


def _said(path, error):
    return f"{path}: {error}. Remove it, or set TRITONKERNELS_TUNING to another file or to off"


def _entries_of(path):
    """{key: {compiler: Entry}} of the file; empty if there is none."""
    try:
        with private.opened(path) as descriptor, open(descriptor, closefd=False, encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError:
        return {}
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA or not isinstance(content.get("entries"), list):
        raise ValueError(f"its schema is {schema!r:.40}, and this version of tritonkernels reads {SCHEMA}")
    entries = {}
    for entry in map(Entry.of, content["entries"]):
        entries.setdefault(entry.key, {})[entry.compiler] = entry
    return entries


def _replace(path, entries):
    """Write the file anew, in one step for whoever reads it."""
    content = {"schema": SCHEMA, "entries": [vars(entry) for versions in entries.values() for entry in versions.values()]}
    descriptor, name = tempfile.mkstemp(prefix=".tuning-", dir=path.parent)  # private for any umask
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


USER = UserTable()
