"""Build the CUDA kernels of some cases before the comparison, as many at a time as there are cores.

Built as their turn comes, one after the other, they take most of a first comparison's time.
"""

import contextlib
import importlib
import os
from concurrent.futures import ThreadPoolExecutor

from cuda_reference import build
from cuda_reference.launch import LIBRARY
from tritonkernels.errors import TritonKernelsError, UnsupportedError

from ..render import table


def sources(cases, names, device):
    """{(header, expressions)}: what the designs (all, or those of the given names) launch on the cases."""
    found = {}
    for case in cases:
        args, kwargs = case.outlines()
        call = importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)
        for name in LIBRARY.names(case.op):
            if names is None or name in names:
                for launch in _launches(call, name, device):
                    found[launch.source.header, launch.source.expressions] = None
    return list(found)


def _launches(call, name, device):
    try:
        design, config = LIBRARY.choose(call.problem, LIBRARY.target(device), name)
    except UnsupportedError:
        return []
    return [launch for tensors in call.parts for launch in design.launches(call.problem, config, *tensors)]


def build_all(cases, names, device):
    """A build that fails is left to the comparison, where it is the failure of a row."""

    def build_one(source):
        with contextlib.suppress(TritonKernelsError):
            build.load(*source, "cuda" if device.type == "cuda" else "simt")
        advance(f"building {source[0]}")

    wanted = sources(cases, names, device)
    with table.progress(len(wanted)) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(build_one, wanted))
