"""The accesses of conv2d's designs on CUDA cores, counted in the emulation: a table of docs/conv2d.md, made by compiled.py."""

import torch

import cuda_reference.launch
from cuda_reference.trace import trace
from tritonkernels.analysis.warp import WARP
from tritonkernels.conv2d import prepare

from .. import ROOT
from ..measure import kernels, measured
from ..show import table

DESIGNS = ("naive", "direct", "prefetched", "depthwise", "grouped", "register_blocked")
CASE = "1x6x768x512 by 6x6x6x6"  # of the ladder, whose configs are traced
IMAGE = (1, 6, 21, 68)  # 16 x 63 outputs: a tile of register_blocked
LAYOUTS = {"NCHW": torch.contiguous_format, "channels_last": torch.channels_last}
INPUTS, RESULTS = ("argument 0",), ("argument 3",)


def traced():
    """Multiply-adds for each load, and what the loads and stores cost in both layouts."""
    headings = ["design", "multiply-adds a load", "shared memory"]
    headings += [f"{what}, {layout}" for what in ("inputs", "results") for layout in LAYOUTS]
    return table.markdown(headings, [_row(name, config) for name, config in configs().items()])


def configs():
    """{design: the config that the ladder's record in CUDA is of}"""
    (case,) = (case for case in measured.suites(measured.RESULTS / "h200")["image"] if case.name == CASE)
    found = {r.design: r.config for r in case.of("cuda")}
    return {name: found[name] for name in DESIGNS}


def sources():
    """A hash of the kernels that are traced, and their configs."""
    files = {ROOT / f"cuda_reference/conv2d/{name}.cuh" for name in DESIGNS}
    return [kernels.digest(kernels.reached(files)), configs()]


def _row(name, config):
    (design,) = (design for design in cuda_reference.launch.LIBRARY.designs("conv2d") if design.name == name)
    found = {layout: _accesses(design, config, memory) for layout, memory in LAYOUTS.items()}
    loads = [x for x in found["NCHW"] if x.kind == "read"]
    a_load = products() / WARP / sum(x.instructions for x in loads)
    shared = cost(x for x in loads if x.space == "shared")
    inputs = [cost(x for x in found[layout] if (x.kind, x.array) == ("read", *INPUTS)) for layout in LAYOUTS]
    results = [cost(x for x in found[layout] if (x.kind, x.array) == ("write", *RESULTS)) for layout in LAYOUTS]
    return [f"`{name}`", f"{a_load:.1f}", shared, *inputs, *results]


def products():
    """The multiply-adds of the traced problem."""
    problem = _call(torch.contiguous_format).problem
    return problem.outputs * problem.terms


def _accesses(design, config, memory):
    call = _call(memory)
    return [x for t in trace(*design.launches(call.problem, config, *call.parts[0])) for x in t.accesses]


def _call(memory):
    return prepare(torch.randn(IMAGE).to(memory_format=memory), torch.randn(6, 6, 6, 6))


def cost(accesses):
    """The total of wavefronts or sectors, and the fewest possible for the same bytes."""
    own = list(accesses)
    return f"{sum(x.units for x in own)} for {sum(x.ideal_units for x in own)}" if own else "-"
