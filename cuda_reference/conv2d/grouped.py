"""conv2d, grouped: the template instances, configs and launches of grouped.cuh."""

import torch

from tritonkernels.design import Design
from tritonkernels.operations.conv2d.shapes import STAGED_BYTES
from tritonkernels.operations.conv2d.work import of_outputs, strip

from ..launch import Kernel, ceil_div, config_of
from .parts.operands import TYPES, arguments, followed, what_follows
from .parts.runs import (
    ANY,
    FEW_TAPS,
    LANES,
    are_channels_inside,
    are_pieces,
    channels_per_load,
    columns_at_once,
    filter_bytes,
    slides,
    unrolled,
)

RUN = 7  # outputs of a thread, in a column
THREADS = {1: 128, LANES: 256}  # per block, by the number of lanes per position


def lanes_of(problem, kt, input, *results):
    """Lanes per position: LANES if each lane's channels are in one group and an aligned access has them, else 1."""
    pieces = (input, channels_per_load(problem.dtype)), *((t, kt) for t in results if t is not None)
    are_aligned = all(are_pieces(*piece) for piece in pieces)
    return LANES if are_aligned and _are_whole(problem, kt) else 1


def _are_whole(problem, kt):
    """Whether lanes' channels are in one group, and their filters fit."""
    g, unit = problem, channels_per_load(problem.dtype)
    return g.c // g.groups % unit == 0 and g.k // g.groups % kt == 0 and _staged(g, kt, LANES) >= unit


def _staged(problem, kt, lanes):
    """Input channels whose filters fit in shared memory at a time, a multiple of the channels per load."""
    unit = channels_per_load(problem.dtype) if lanes > 1 else 1
    return min(problem.c // problem.groups, STAGED_BYTES // filter_bytes(problem, kt, lanes)) // unit * unit


def taps_of(problem, lanes, input):
    """(TAPS, STEP) of the kernel that is unrolled for the filter's size, else ANY."""
    return unrolled(problem, input) if _slides(problem) and (lanes > 1 or input.stride(3) == 1) else ANY


def _slides(problem):
    """Whether the kernel for the filter may be unrolled, as those for small square ones are."""
    return problem.r == problem.s <= FEW_TAPS and problem.dilation[1] == 1 and slides(problem)


def _sizes(dtype):
    """KT, the output channels of a thread; fp64 has no registers for 8."""
    return (4,) if dtype == torch.float64 else (4, 8)


def configs(problem, target):
    """8 only where a group has more than 4 outputs, and its filters fit."""
    outputs = problem.k // problem.groups
    return [config_of(KT=kt) for kt in _sizes(problem.dtype) if kt == 4 or (outputs > 4 and _staged(problem, kt, 1))]


def _refuses(problem, target):
    if problem.terms and not _staged(problem, 4, 1):
        return f"the filters of 4 output channels and an input channel take more than {STAGED_BYTES} bytes of shared memory"
    return None


def _launches(problem, config, input, weight, bias, out, residual=None):
    g, kt = problem, config["KT"]
    lanes = lanes_of(g, kt, input, out, residual)
    taps, step = taps_of(g, lanes, input)
    threads, unit, staged = THREADS[lanes], channels_per_load(g.dtype) if lanes > 1 else 1, _staged(g, kt, lanes)
    together_built = [{"KT": size, "STEP": of} for size in _sizes(g.dtype) for of in ((1, 2) if taps else (1,))]
    kernel = Kernel("conv2d::grouped<{T}, {KT}, {UNIT}, {LANES}, {TAPS}, {STEP}>", together_built)
    kernel = followed(kernel) if g.after else kernel
    parameters = {"T": TYPES[g.dtype], "UNIT": unit, "LANES": lanes, "TAPS": taps, "STEP": step, **config}
    grid = (_count_blocks(g, kt, lanes),)
    given = *arguments(g, input, weight, bias, out), staged, *what_follows(g, residual)
    yield kernel.launch(parameters, grid, threads, given, staged * filter_bytes(g, kt, lanes))


def _count_blocks(problem, kt, lanes):
    tiles = problem.groups * ceil_div(problem.k // problem.groups, kt)
    positions = problem.n * ceil_div(problem.p, RUN) * problem.q
    return ceil_div(tiles, lanes) * ceil_div(positions, THREADS[lanes] // lanes)


def _work(problem, config, target):
    """A trip for each column of the channels that are loaded together, and one for the filters that are staged together."""
    kt, of_group = config["KT"], problem.c // problem.groups
    lanes = LANES if are_channels_inside(problem) and _are_whole(problem, kt) else 1
    threads, unit, staged = THREADS[lanes], channels_per_load(problem.dtype) if lanes > 1 else 1, _staged(problem, kt, lanes)
    channels, piece = kt * lanes, strip(problem, RUN, threads // lanes)
    slides = _slides(problem) and (lanes > 1 or not problem.channels_last)
    steps = of_group // unit * columns_at_once(problem, slides) + ceil_div(of_group, max(1, staged))
    given = _count_blocks(problem, kt, lanes), threads, piece, channels, steps, RUN * threads * kt
    shared = staged * filter_bytes(problem, kt, lanes)
    return (of_outputs(problem, target, *given, registers=min(128, 80 + RUN * kt), shared=shared),)


DESIGN = Design(refuses=_refuses, configs=configs, launches=_launches, work=_work)
