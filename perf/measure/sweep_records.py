"""Records of a sweep, to learn from: a file of JSON lines, which are headers and, after each, its rows.

`perf sweep` appends to *.jsonl, one file an operation; `perf pack` adds those to PACKED of their GPU, which is checked in.

A header: {"environment", "settings"}. A row, of a shape in a package: {"op", "family", "package", "problem":
Problem.describe(), "torch": [name, us] of its fastest function or null, "times": [[design, config, us, relative standard error
or null if there is one sample], ...], "wrong" and "failed": [[design, config, why], ...], "left_out": contenders not built in
time, "faults": how often the process ended}, and "fault", the last one's reason, if the trial was given up.
"""

import dataclasses
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path

import torch

from tritonkernels import problem as problems

from . import packed
from .shapes import half, key_of

PACKED = "sweep.jsonl.xz"

PROBLEMS = {kind.op: kind for kind in vars(problems).values() if isinstance(kind, type) and issubclass(kind, problems.Problem)}


@dataclass
class Row:
    """All that was recorded of a shape: the times of a package are (design, config, us, relative standard error)."""

    family: str
    problem: problems.Problem
    environment: dict = field(repr=False)
    torch: tuple | None = None  # (name, us)
    times: dict = field(default_factory=dict)  # package -> its times

    @property
    def half(self):
        """ "fit" or "judge"."""
        return half(key_of(self.problem.op, self.problem.describe()))


def problem_of(op, described):
    """The Problem that describe() gave."""
    kind = PROBLEMS[op]
    return kind(**{f.name: _value(f, described[f.name]) for f in dataclasses.fields(kind) if f.name in described})


def _value(field, value):
    if field.name.endswith("dtype"):
        return getattr(torch, value)
    return tuple(value) if isinstance(value, list) else value


def files(folder):
    """The files of sweeps in a folder and its folders."""
    return sorted([*folder.rglob("*.jsonl"), *folder.rglob(PACKED)])


def is_sweep(path):
    return ".jsonl" in path.suffixes


def load(paths, op=None):
    """The Rows of files, one for each shape and environment's GPU; of what was measured again the last."""
    rows = {}
    for path in paths:
        for environment, row in read(path, op):
            key = key_of(row["op"], row["problem"]), environment["device"]
            if key not in rows:
                rows[key] = Row(row["family"], problem_of(row["op"], row["problem"]), environment)
            known = rows[key]
            known.torch = tuple(row["torch"]) if row["torch"] else known.torch
            known.times[row["package"]] = [tuple(time) for time in row["times"]]
    return list(rows.values())


def read(path, op=None):
    """(environment, row) of each row, or of an operation's."""
    for header, row in _read(path):
        if op in (None, row["op"]):
            yield header["environment"], row


def _read(path):
    """(header, row) of each row. The last line may be the half that a process wrote when it was ended."""
    header = None
    for line in packed.read(path).splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if "environment" in row:
            header = row
        else:
            yield header, row


def pack(paths, out, device):
    """Writes the device's rows of files, each once, into one, and returns how many more than it had."""
    had = sum(1 for _ in read(out)) if out.exists() else 0
    found = itertools.chain.from_iterable(map(_read, filter(Path.exists, paths)))
    rows = dict.fromkeys((_line(head), _line(row)) for head, row in found if head["environment"]["device"] == device)
    runs = itertools.groupby(rows, key=lambda pair: pair[0])
    packed.write(out, "".join(head + "".join(row for _, row in own) for head, own in runs))
    return len(rows) - had


class Writer:
    """Adds rows to a file; knows which shapes it has from the same sources and GPU."""

    def __init__(self, path, environment, **settings):
        same = ("commit", "device")
        found = read(path) if path.exists() else ()
        self.done = {
            (key_of(row["op"], row["problem"]), row["package"])
            for before, row in found
            if all(before[name] == environment[name] for name in same)
        }
        self._path, self._header = path, {"environment": environment, "settings": settings}

    def write(self, row):
        header, self._header = self._header, None
        with open(self._path, "a") as file:
            if header:
                file.write("\n" * self._is_cut_off() + _line(header))
            file.write(_line(row))

    def _is_cut_off(self):
        text = self._path.read_bytes()
        return bool(text) and not text.endswith(b"\n")


def _line(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n"
