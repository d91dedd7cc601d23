"""Builds the CUDA kernels of some cases before the comparison, on all cores.

Built one after the other, on first use, they would take most of the time of a first comparison.
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
    """[(header, expressions)] of the kernels that the designs (all, or those named) launch on the cases."""
    unique = {}
    for case in cases:
        args, kwargs = case.outlines()
        call = importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)
        for name in LIBRARY.names(case.op):
            if names is None or name in names:
                for launch in _launches(call, name, device):
                    unique[launch.source.header, launch.source.expressions] = None
    return list(unique)


def _launches(call, name, device):
    try:
        design, config = LIBRARY.choose(call.problem, LIBRARY.target(device), name)
    except UnsupportedError:
        return []
    return [launch for tensors in call.parts for launch in design.launches(call.problem, config, *tensors)]


def build_all(cases, names, device, quiet=False):
    """Build the kernels. The comparison reports a failed build as the failure of a row."""

    def build_one(source):
        with contextlib.suppress(TritonKernelsError):
            build.load(*source, "cuda" if device.type == "cuda" else "simt")
        advance(f"building {source[0]}")

    modules = sources(cases, names, device)
    with table.progress(len(modules), quiet) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            list(pool.map(build_one, modules))
        except KeyboardInterrupt:  # those that have not begun are cancelled, and the pool waits for the others
            build.stop()
            raise
