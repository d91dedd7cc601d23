"""Which sources the kernels of an operation are made from: records of others are out of date."""

import functools
import hashlib
import os
import re
from pathlib import Path

from tritonkernels import OPS

from .. import ROOT
from . import code, records

PACKAGES = ("tritonkernels", "cuda_reference")
OPERATIONS = "tritonkernels/operations"  # folders of what is no kernel, for both packages
SHARED = ("language", "common")  # folders of device code that is no operation's own
IMPORT = re.compile(r"^ *from (\.*)([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)  # of Python
PLACES = re.compile(rf'(?:{IMPORT.pattern}|^#include "[^"]*")\n?', re.MULTILINE)  # where what is used is
HEADER = re.compile(r'"([\w./]+\.cuh)"')  # included by a header, or named by the design that has it built


@functools.cache
def digests():
    """{operation: a hash of its sources in both packages, and of those that they use}"""
    return {op: digest(reached(own(op))) for op in OPS}


def reached(files):
    """The files, and all that they import or include, directly or not, of operations and of what these share.

    A package is no such file: who imports another operation from it calls its kernels, and is not made of them.
    """
    found, open_ones = set(), set(files)
    while open_ones:
        found |= open_ones
        open_ones = {path for file in open_ones for _, path in uses(file)} - found
    return found


def own(op):
    """The operation's own files in both packages."""
    folders = (*(ROOT / package / op for package in PACKAGES), ROOT / OPERATIONS / op)
    return {path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".cuh")}


def used(file):
    """What the file may import or include of the repository, whether it exists or not."""
    return {path for _, path in _named(file)}


def uses(file):
    """((start, end), path) of the places in the file's text that import or include, in their order, and of what they name:
    files of operations and of what these share."""
    return sorted({(place, path) for place, path in _named(file) if _holds_kernels(path)})


def _named(file):
    text = file.read_text()
    for match in IMPORT.finditer(text):
        dots, module, names = match.groups()
        folder = (file.parents[len(dots) - 1] if dots else ROOT).joinpath(*module.split("."))
        for path in (folder.with_suffix(".py"), *(folder / f"{name}.py" for name in re.findall(r"\w+", names))):
            yield match.span(), path
    for match in HEADER.finditer(text):
        for path in (Path(os.path.normpath(file.parent / match[1])), ROOT / "cuda_reference" / match[1]):
            yield match.span(), path


def _holds_kernels(path):
    package, folder, *_ = parts(path) if path.is_relative_to(ROOT) else ("", "")
    return package in PACKAGES and folder in (*OPS, *SHARED) and path.is_file()


@functools.cache
def parts(path):
    """The parts of a path in the repository, those of operations/gemm as if they were of gemm."""
    found = (*path.relative_to(ROOT).parts, "", "")
    return (found[0], *found[2:]) if path.is_relative_to(ROOT / OPERATIONS) else found


def digest(files):
    """A hash of what they say, wherever they are: a file that moves is the same, and so is one that imports what has moved."""
    hashed = hashlib.sha256()
    for text in sorted(PLACES.sub("", code.of(file.suffix, file.read_bytes()).decode()) for file in files):
        hashed.update(text.strip().encode() + b"\0")
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
    return len(missing) + sum(not (row["ok"] and is_current(row)) for row in rows)


def is_current(row):
    """Whether the kernels of its operation are today's, and those of the operation whose design it is (gemv.naive)."""
    measured = row["environment"].get("kernels", {})
    return all(measured.get(op) == digests()[op] for op in {row["op"], *(row["design"] or "").split(".")} & digests().keys())
