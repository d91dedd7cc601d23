"""conv2d, depthwise: the template instances and launches of depthwise.cuh."""

from tritonkernels.design import Design

from ..launch import Kernel, ceil_div
from .parts.operands import TYPES, arguments
from .parts.runs import ANY, UNROLLED, unrolled

THREADS, RUNS = 128, (7, 14)
KERNEL = Kernel(
    "conv2d::depthwise<{T}, {THREADS}, {TAPS}, {STEP}, {RUN}>",
    [{"TAPS": taps, "STEP": step, "RUN": run} for run in RUNS for taps, step in (*UNROLLED, ANY)],
)


def launches(problem, config, input, *others):
    taps, step = unrolled(problem, input)
    run = RUNS[problem.p > 7]
    parameters = {"T": TYPES[problem.dtype], "TAPS": taps, "STEP": step, "RUN": run, **config}
    columns = problem.n * ceil_div(problem.p, run) * problem.q
    yield KERNEL.launch(parameters, (ceil_div(problem.k * columns, THREADS),), THREADS, arguments(problem, input, *others))


DESIGN = Design(configs=lambda problem, target: [{"THREADS": THREADS}], launches=launches)
