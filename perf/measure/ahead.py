"""Builds the kernels of some cases before the comparison, on all cores.

Built one after the other, on first use, they would take most of the time of a first comparison.
"""

import contextlib
import functools
import importlib
import os
from concurrent.futures import ThreadPoolExecutor

from cuda_reference import build
from tritonkernels.errors import UnsupportedError
from tritonkernels.plans import on_device

from ..offline.compiling import specialised
from ..show import table
from .contenders import PACKAGES


def sources(cases, names, device):
    """{(header, expressions): a launch} of the CUDA kernels that the designs (all, or those named) launch on the cases."""
    found = {}
    for launch in _launches("cuda", cases, names, device):
        found.setdefault((launch.source.header, launch.source.expressions), launch)
    return found


def triton_launches(cases, names, device):
    """A launch of each Triton kernel, as Triton specialises it, that the designs launch on the cases."""
    return list({_identity(launch): launch for launch in _launches("triton", cases, names, device)}.values())


def _identity(launch):
    return launch.kernel, str(specialised(launch)), str(launch.options)


def _launches(implementation, cases, names, device):
    """The launches of the package's designs, of tensors without memory."""
    library = importlib.import_module(f"{PACKAGES[implementation]}.launch").LIBRARY
    target = library.target(device)
    for case in cases:
        args, kwargs = case.outlines()
        call = library.operation(case.op).prepare(*args, **kwargs)
        for name in (None,) if case.chosen and names is None else library.names(case.op):
            if names is None or name is None or name in names:
                with contextlib.suppress(UnsupportedError):
                    design, config = library.choose(call.problem, target, name)
                    for tensors in call.parts:
                        yield from design.launches(call.problem, config, *tensors)


def build_all(cases, implementations, names, device, quiet=False):
    """Build the kernels. An error comes again in the comparison, as the failure of a row."""

    def run(title, build_one):
        with contextlib.suppress(Exception), on_device(device):
            build_one()
        advance(f"building {title}")

    todo = []
    if "cuda" in implementations:  # first, since a module takes longer than many Triton kernels
        for source, launch in sources(cases, names, device).items():
            on_gpu = functools.partial(build.load, *source, "cuda")  # all configs, where a call builds its own
            todo.append((source[0], on_gpu if device.type == "cuda" else functools.partial(launch.kernel, device)))
    if "triton" in implementations and device.type == "cuda":  # the interpreter compiles nothing
        todo += [(launch.name, launch.build) for launch in triton_launches(cases, names, device)]
    with table.progress(len(todo), quiet) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            list(pool.map(run, *zip(*todo)))
        except KeyboardInterrupt:  # those that have not begun are cancelled, and the pool waits for the others
            build.stop()
            raise
