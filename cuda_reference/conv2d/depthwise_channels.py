"""conv2d, depthwise_channels: the template instances and launches of depthwise_channels.cuh."""

from tritonkernels.design import Design
from tritonkernels.operations.conv2d.shapes import STAGED_BYTES
from tritonkernels.operations.conv2d.work import of_outputs, strip, whole

from ..launch import Kernel, ceil_div, configs_of
from .parts.operands import TYPES, arguments, followed, what_follows
from .parts.runs import (
    ANY,
    LANES,
    UNROLLED,
    are_channels_inside,
    are_pieces,
    channels_per_load,
    columns_at_once,
    filter_bytes,
    inputs_at_once,
    slides,
    unrolled,
)

THREADS, RUN = 128, 7
KERNEL = Kernel(
    "conv2d::depthwise_channels<{T}, {THREADS}, {TAPS}, {STEP}, {RUN}, {WIDTH}>",
    [{"TAPS": taps, "STEP": step} for taps, step in (*UNROLLED, ANY)],
)
FOLLOWED = followed(KERNEL)


def refuses(problem, target):
    needed = filter_bytes(problem, channels_per_load(problem.dtype), LANES)
    if not problem.c == problem.groups == problem.k:
        return "it is for one filter a channel"
    if needed > STAGED_BYTES:
        return f"a block's filters take {needed} bytes of shared memory, of {STAGED_BYTES}"
    return None


def launches(problem, config, input, weight, bias, out, residual=None):
    width = channels_per_load(problem.dtype)
    if problem.k % width or not all(are_pieces(t, width) for t in (input, out, residual) if t is not None):
        width = 1
    taps, step = unrolled(problem, input) if _slides(problem) else ANY
    parameters = {"T": TYPES[problem.dtype], "TAPS": taps, "STEP": step, "RUN": RUN, "WIDTH": width, **config}
    grid = (count_blocks(problem, width),)
    given = *arguments(problem, input, weight, bias, out), *what_follows(problem, residual)
    kernel = FOLLOWED if problem.after else KERNEL
    yield kernel.launch(parameters, grid, THREADS, given, filter_bytes(problem, width, LANES))


def _slides(problem):
    """Whether the kernel for the filter is unrolled, as those for square ones are."""
    return problem.r == problem.s and slides(problem)


def count_blocks(problem, width):
    columns = problem.n * ceil_div(problem.p, RUN) * problem.q
    return ceil_div(problem.k, LANES * width) * ceil_div(columns, THREADS // LANES)


def configs(problem, target):
    return configs_of("THREADS", (THREADS,))


def work(problem, config, target):
    width = channels_per_load(problem.dtype)
    if problem.k % width or not are_channels_inside(problem):
        width = 1
    channels, shared = LANES * width, filter_bytes(problem, width, LANES)
    given = count_blocks(problem, width), THREADS, strip(problem, RUN, THREADS // LANES), channels
    steps, outputs = 1 + columns_at_once(problem, _slides(problem)), RUN * THREADS * width
    taps = channels * whole(problem.r * problem.s * problem.dtype.itemsize)
    registers = min(255, 40 + width * (RUN + inputs_at_once(problem, RUN, _slides(problem))))
    return (of_outputs(problem, target, *given, steps, outputs, taps, registers, shared),)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
