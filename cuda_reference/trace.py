"""The accesses of CUDA kernels to memory, counted without a GPU: sectors, bank conflicts and races, line by line.

A kernel runs in the emulation, in a build that records every access (simt/trace_recorder.cpp). The lanes of a warp that execute
an instruction for the n-th time since the last barrier make one warp-level access. (If lanes diverge inside a loop, this may
combine accesses that hardware would not.) Requests, sectors and wavefronts are counted as in tritonkernels.analysis.

WMMA fragments are loaded and stored element by element in the emulation, unlike in hardware.
"""

import itertools
import os
import re
import threading
from dataclasses import dataclass

import numpy as np
import torch

from tritonkernels.errors import DeviceError, LaunchError

from . import bulk, toolchain
from .launch import CudaLaunch, _wire
from .trace_counts import RECORD, Access, Part, Race, accesses, races

__all__ = ["Access", "Race", "Trace", "trace"]

_alone = threading.Lock()  # a traced module has one recorder


@dataclass(frozen=True)
class Trace:
    accesses: tuple[Access, ...]  # by line
    races: tuple[Race, ...]


def trace(*launches: CudaLaunch) -> list[Trace]:
    """Runs the launches in order on their CPU tensors and returns their Traces. Kernels of one file are built together."""
    expressions = {}
    for launch in launches:
        for argument in launch.arguments:
            if isinstance(argument, torch.Tensor) and argument.device.type != "cpu":
                raise DeviceError("a traced launch", argument.device, "tensors on the CPU", "Call .cpu().")
        expressions.setdefault(launch.source.header, {})[launch.expression] = None
    modules = {header: bulk.load(header, tuple(wanted), tuple(wanted), "trace") for header, wanted in expressions.items()}
    return [_trace(launch, modules[launch.source.header]) for launch in launches]


def _trace(launch, module):
    file = module["__file__"].replace("/proc/self/", f"/proc/{os.getpid()}/")  # for the tools, which run in other processes
    arrays = sorted([*_global_arrays(launch), *_shared_arrays(module["trace_shared"](), file)], key=lambda array: array.first)
    records = _record(launch, module, arrays)
    array = _array_of(records["address"], arrays)
    records, array = records[array >= 0], array[array >= 0]  # without the emulation's own thread_local variables
    sites, site = np.unique(records["site"], return_inverse=True)
    lines = _lines(sites, file, os.path.dirname(os.path.realpath(launch.source.header)))
    all_accesses, all_races = [], []
    for space in ("global", "shared"):
        in_space = np.array([a.space == space for a in arrays])[array]
        if in_space.any():
            part = Part(space, records[in_space], site[in_space], lines, array[in_space], [a.name for a in arrays])
            all_accesses += accesses(part)
            all_races += races(part)
    return Trace(tuple(sorted(all_accesses, key=lambda a: [_file_and_line(line) for line in a.lines])), tuple(all_races))


@dataclass(frozen=True)
class _Array:
    space: str
    name: str
    first: int  # address
    end: int


def _global_arrays(launch):
    arrays = {}
    for i, argument in enumerate(launch.arguments):
        if isinstance(argument, torch.Tensor) and argument.untyped_storage().nbytes():
            first, size = argument.untyped_storage().data_ptr(), argument.untyped_storage().nbytes()
            arrays.setdefault(first, _Array("global", f"argument {i}", first, first + size))
    return arrays.values()


def _shared_arrays(dynamic, file):
    """The variables in shared memory: thread_local ones inside of kernels; `dynamic` is the address of the dynamic memory."""
    table = toolchain.output(["readelf", "--syms", "--wide", "--demangle", file])
    symbols = re.findall(r"^ *\d+: (\w+) +(\w+) TLS +\w+ +\w+ +\d+ (.*)$", table, re.MULTILINE)
    offsets = {name: (int(offset, 16), int(size, 0)) for offset, size, name in symbols}
    base = dynamic - offsets["dynamic_shared_memory"][0]
    for name, (offset, size) in offsets.items():
        if name.startswith("guard variable for "):  # made by the compiler for an array whose type has constructors
            continue
        function, _, variable = name.rpartition(")::")
        if name == "dynamic_shared_memory" or (function and not function.startswith(("simt::", "std::"))):
            yield _Array("shared", variable, base + offset, base + offset + size)


def _record(launch, module, arrays):
    shared = [a for a in arrays if a.space == "shared"]
    ranges = [*((a.first, a.end) for a in arrays if a.space == "global"), (shared[0].first, shared[-1].end)]
    grid = (*launch.grid, 1, 1)[:3]
    with _alone:
        try:
            module["trace_begin"](*itertools.chain(*ranges))
            try:
                module[launch.expression](grid, launch.block, launch.shared_bytes, 0, *map(_wire, launch.arguments))
            finally:
                records = module["trace_end"]()
        except RuntimeError as error:
            raise LaunchError(f"{launch.expression}, traced, grid {launch.grid}, block {launch.block}: {error}") from error
    return np.frombuffer(records, RECORD)


def _array_of(address, arrays):
    """The index of the array that each address is in, or -1."""
    index = np.searchsorted(np.array([a.first for a in arrays], np.uint64), address, "right") - 1
    return np.where(address < np.array([a.end for a in arrays], np.uint64)[index], index, -1)


def _lines(sites, file, folder):
    """The kernel's lines of each site, that it is inlined from, innermost first."""
    command = ["addr2line", "-i", "-a", "-e", file, *(hex(site) for site in sites)]
    blocks = re.split(r"^0x[0-9a-f]+\n", toolchain.output(command), flags=re.MULTILINE)[1:]
    return [_kernel_lines(block.splitlines(), folder) for block in blocks]


def _kernel_lines(frames, folder):
    """The lines with paths relative to this package, or in the folder of a kernel outside, without those of the emulation."""
    lines = []
    for frame in frames:
        path, _, line = frame.split(" ")[0].rpartition(":")  # " (discriminator 2)" may follow
        path = os.path.normpath(re.sub(rf"^{toolchain.OUTSIDE}(?=/)", lambda _: folder, path))
        if not path.startswith(f"{toolchain.BUILT_IN}/simt/") and "/include/c++/" not in path:
            lines.append(f"{path.removeprefix(f'{toolchain.BUILT_IN}/')}:{line}")
    return tuple(lines) or (frames[0],)


def _file_and_line(text):
    file, _, line = text.rpartition(":")
    return file, int(line) if line.isdigit() else 0
