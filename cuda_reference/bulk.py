"""Modules of the emulation for a program that launches many instances, such as the tests: all of them in some fifty modules.

A call in the emulation builds its design's config space, of which it launches one instance. That is quick, but a thousand calls
compile twice the instances that they launch, and read each header a dozen times. The environment variable
TRITONKERNELS_INSTANCES names a file of what will be launched, {backend: {header: [expressions]}} as JSON, which `build_listed`
builds. Calls take these modules where they are built, in other processes too; what is not listed builds as ever.
"""

import functools
import json
import os
from pathlib import Path

from tritonkernels import cache
from tritonkernels.backend import log
from tritonkernels.errors import BuildError

from . import build

VARIABLE = "TRITONKERNELS_INSTANCES"
MOST = 64  # instances of a module: more save little of what a module takes, which these do for seven seconds
unlisted = set()  # (header, expression, backend) of what was launched, and is in no list while there is one


def modules():
    """(header, expressions, backend) of each, those of most instances first."""
    return _modules(os.environ.get(VARIABLE))


def build_listed(worker=0, workers=1):
    """Build all that are not built. Each worker begins with a share of them that takes as long as the others', and goes through
    these from their ends on: one that is ahead helps without waiting for what is being built."""
    wanted = modules()
    others = [module for i, module in enumerate(wanted) if i % workers != worker]
    for header, expressions, backend in (*wanted[worker::workers], *reversed(others)):
        try:
            build.build_part(header, expressions, expressions, backend)
        except BuildError as error:  # for instance the list is older than the kernel: a call says what is wrong
            log.warning(f"cuda_reference: the listed instances of {header} build one by one: {error}")
    _is_built.cache_clear()


def load(header, part, whole, backend):
    """The kernels of `part`, and maybe more: of a listed module that has them all, if it is built; else of `whole`."""
    listed = _by_instance(os.environ.get(VARIABLE))
    together = {listed.get((header, e, backend)) for e in part}
    if listed and not os.path.isabs(header):
        unlisted.update(instance for e in part if (instance := (header, e, backend)) not in listed)
    key, *others = together
    built = key and not others and _is_built(header, key, backend, cache.folder())
    return build.load(header, key if built else whole, backend)


@functools.cache
def _modules(path):
    if not path:
        return ()
    found = []
    for backend, headers in json.loads(Path(path).read_text()).items():
        for header, expressions in headers.items():
            size = -(-len(expressions) // -(-len(expressions) // MOST))  # alike, and neighbours together: they share templates
            parts = (tuple(expressions[i : i + size]) for i in range(0, len(expressions), size))
            found += [(header, part, backend) for part in parts]
    return tuple(sorted(found, key=lambda module: -len(module[1])))


@functools.cache
def _by_instance(path):
    return {(header, e, backend): expressions for header, expressions, backend in _modules(path) for e in expressions}


@functools.cache  # to look takes as long as a small launch
def _is_built(header, expressions, backend, folder):
    return build.is_built(header, expressions, backend)
