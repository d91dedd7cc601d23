"""What the outcome of a step depends on: it is valid while the digest of these files is unchanged.

A step is of a family of operations, or of all. One of a family depends on that family's kernels and host code, and those of the
operations that these and its tests use; on all that the packages share; on the gate's programs; and on the tests that it may
run, with all that they import. Files of other operations, other tests and the rest of perf may change without it; so may
comments and docstrings, which no program runs.
"""

import functools
import hashlib
import re

from tritonkernels.operation import OPERATIONS

from .. import HERE, ROOT
from ..measure import code, environment, kernels
from . import plan

PROGRAMS = (*(HERE / "gate" / f"{name}.py" for name in ("gate_steps", "gate_pytest", "findings")), HERE / "processes.py")
SETTINGS = "pyproject.toml"  # whose section for pytest counts
DOTTED = re.compile(r"\b(?:tests|perf)(?:\.\w+)+")  # a module by its name, as in a command


def digest(step, used=()):
    """A hash of what the step depends on, its tests having used these operations."""
    wanted = files(step, frozenset(used))
    return hashlib.sha256(b"".join(line for path, line in _lines().items() if path in wanted)).hexdigest()[:12]


@functools.cache
def files(step, used=frozenset()):
    """The files that the step depends on."""
    check, family, _ = plan.parts(step)
    if check == "around":
        return set(_hashes())
    own, shared = _of_packages(frozenset((*plan.FAMILIES.get(family, plan.OPS), *used)))
    return own | shared | _reached(_programs(check, family)) | {*PROGRAMS, ROOT / SETTINGS} & _hashes().keys()


def _programs(check, family):
    """The tests that the step may run, or the program that makes its calls."""
    tests = ROOT / "tests"
    folders = {path: path.relative_to(tests).parts[0] for path in _hashes() if path.is_relative_to(tests)}
    if check == "large":
        wanted = {check}
    elif family in plan.FAMILIES and check == "tests":
        wanted = {*plan.ACROSS}
    elif check in ("tests", "two_gpus"):
        wanted = {path.name for path in tests.iterdir() if path.is_dir()} - {*plan.AROUND}
    else:
        by_names = {HERE / "measure/kernels.py"} if check.endswith("san") else set()  # it finds the designs that these are for
        return by_names | {tests / "gate" / ("build.py" if check == "build" else "child.py")}
    of_it = {path for path in folders if plan.family_of_file(path.relative_to(tests).parts) in (None, family)}
    return {tests / "conftest.py"} | {path for path in of_it if folders[path] in wanted}


@functools.cache
def _of_packages(ops):
    """(the files of these operations and of all that they are made of or call, the files that are no operation's)"""
    folders = {
        path: folder for path in _hashes() for package, folder, *_ in [kernels.parts(path)] if package in kernels.PACKAGES
    }
    wanted = ops.union(*map(_lenders, ops))
    found, new = set(), {path for path in folders if folders[path] in wanted}
    while new:
        found |= new
        used = {path for file in new for path in _imports(file) if folders.get(path) in plan.OPS}
        called = {folders[path] for path in used if path.name == "__init__.py"}
        new = (used | {path for path in folders if folders[path] in called}) - found
    return found, {path for path in folders if folders[path] not in plan.OPS}


def _lenders(op):
    """The operations whose designs the operation has: their own, or if it has none itself, also what these have of others."""
    operation = OPERATIONS[op]
    for reduction in operation.reductions:
        yield reduction.to
        if not operation.own:
            yield from _lenders(reduction.to)


def _reached(programs):
    """The files, and what of tests, perf and operations they import or name, directly or not.

    A package of the operations is not followed: what is called through it, the tests are seen to use.
    """
    found, new = set(), set(programs)
    while new:
        found |= new
        new = {used for file in new for used in _imports(file) if _is_followed(used)} - found
    return found


def _is_followed(path):
    top, folder, *rest = kernels.parts(path)
    return top not in kernels.PACKAGES or (folder in plan.OPS and rest != ["__init__.py"])


@functools.cache
def _imports(file):
    """What it imports, includes or names; headers that a test names are not compiled from there."""
    if file.suffix not in (".py", ".cuh"):
        return set()
    used = set(kernels.used(file))
    used |= {path.with_suffix("") / "__init__.py" for path in used}
    if kernels.parts(file)[0] not in kernels.PACKAGES:
        named = (ROOT.joinpath(*name.split(".")) for name in DOTTED.findall(file.read_text()))
        used |= {path.with_suffix(".py") for name in named for path in (name, name.parent)}
        used = {path for path in used if path.suffix == ".py"}
    return used & _hashes().keys()


@functools.cache
def _lines():
    """{path: its name and hash} in the order of names."""
    return {path: f"{path.relative_to(ROOT)}\0{_hashes()[path]}\0".encode() for path in sorted(_hashes())}


@functools.cache
def _hashes():
    """{path: a hash of it} of all files that a step may depend on, as they were when this was first asked."""
    folders = (ROOT / name for name in (*environment.SOURCES, "examples"))
    paths = (path for folder in folders for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    paths = (path for path in paths if path.suffix != ".lock")  # of a run of mutants
    found = {path: path.read_bytes() for path in paths if not path.is_relative_to(ROOT / environment.RESULTS)}
    settings = re.findall(r"^\[tool\.pytest.*?(?=^\[|\Z)", (ROOT / SETTINGS).read_text(), re.MULTILINE | re.DOTALL)
    found[ROOT / SETTINGS] = "".join(settings).encode()
    return {path: hashlib.sha256(code.of(path.suffix, content)).hexdigest() for path, content in found.items()}
