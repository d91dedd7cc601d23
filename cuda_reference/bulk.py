"""Modules of the emulation for a program that launches many instances, such as the tests: all of them in some fifty modules.

A call in the emulation builds its design's config space, of which it launches one instance. That is quick, but a thousand calls
compile twice the instances that they launch, and read each header a dozen times. The environment variable
TRITONKERNELS_INSTANCES names a file of what will be launched, {header: [expressions]} as JSON, which `build_listed` builds.
Calls take these modules where they are built, in other processes too; what is not listed builds as ever.
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
unlisted = set()  # (header, expression) of what was launched, and is in no list while there is one


def modules():
    """(header, expressions) of each, those of most instances first."""
    return _modules(os.environ.get(VARIABLE))


def build_listed(first=0):
    """Build all that are not built, from that one on: workers that begin at different ones wait for each other rarely."""
    wanted = modules()
    for header, expressions in (*wanted[first:], *wanted[:first]):
        try:
            build.build_part(header, expressions, expressions, "simt")
        except BuildError as error:  # for instance the list is older than the kernel: a call says what is wrong
            log.warning(f"cuda_reference: the listed instances of {header} build one by one: {error}")
    _is_built.cache_clear()


def built_with(header, expression):
    """The instances in whose module this one is, if it is listed and they are built; else None."""
    listed = _by_instance(os.environ.get(VARIABLE))
    together = listed.get((header, expression))
    if listed and not together:
        unlisted.add((header, expression))
    return together if together and _is_built(header, together, cache.folder()) else None


@functools.cache
def _modules(path):
    if not path:
        return ()
    found = []
    for header, expressions in json.loads(Path(path).read_text()).items():
        size = -(-len(expressions) // -(-len(expressions) // MOST))  # alike, and neighbours together: they share templates
        found += [(header, tuple(expressions[i : i + size])) for i in range(0, len(expressions), size)]
    return tuple(sorted(found, key=lambda module: -len(module[1])))


@functools.cache
def _by_instance(path):
    return {(header, expression): expressions for header, expressions in _modules(path) for expression in expressions}


@functools.cache  # to look takes as long as a small launch
def _is_built(header, expressions, folder):
    return build.is_built(header, expressions, "simt")
