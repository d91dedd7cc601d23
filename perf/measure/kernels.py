"""Which sources the kernels of an operation are made from: records of others are out of date."""

import functools
import hashlib
import re
from pathlib import Path

from tritonkernels import OPS

from .. import ROOT
from . import records

PACKAGES = ("tritonkernels", "cuda_reference")
SHARED = ("tritonkernels/language", "cuda_reference/common")
USED = re.compile(r"(?:from \.+|/)([a-z0-9_]+)[./ ]")  # `from ..gemm.parts import`, `#include "../../gemm/parts/tile.cuh"`


@functools.cache
def digests():
    """{operation: a hash of its sources in both packages, and of those that they use}"""
    return {op: _digest(sorted(_reached(op))) for op in OPS}


def _reached(op):
    """The operation and those whose files it uses, directly or not."""
    found, open_ones = set(), {op}
    while open_ones:
        found |= open_ones
        named = {name for own in open_ones for file in _files(_folders(own)) for name in USED.findall(file.read_text())}
        open_ones = (named & set(OPS)) - found
    return found


def _folders(op):
    return [f"{package}/{op}" for package in PACKAGES]


def _files(folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".cuh"))


def _digest(ops):
    hashed = hashlib.sha256()
    for file in _files([*SHARED, *(folder for op in ops for folder in _folders(op))]):
        hashed.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return hashed.hexdigest()[:12]


def outdated(path: Path, cases):
    """How many records of a suite's file are failures or of other kernels than today's, and how many of its cases have none;
    infinity if it has none at all."""
    try:
        rows = records.read_rows(path)
    except (OSError, ValueError, LookupError, TypeError):
        rows = []
    if not rows:
        return float("inf")
    missing = {(case.op, case.name) for case in cases} - {(row["op"], row["case"]) for row in rows}
    return len(missing) + sum(not (row["ok"] and _is_current(row)) for row in rows)


def _is_current(row):
    return row["environment"].get("kernels", {}).get(row["op"]) == digests()[row["op"]]
