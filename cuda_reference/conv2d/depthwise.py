"""conv2d's depthwise in CUDA C++: its instantiations, and which of them a call gets."""

from tritonkernels.design import Design

from ..launch import CudaLaunch, ceil_div
from .parts.operands import TYPES, arguments, sources
from .parts.runs import ANY, UNROLLED, unrolled

THREADS, RUNS = 128, (7, 14)
TEMPLATE = f"conv2d::depthwise<{{T}}, {THREADS}, {{TAPS}}, {{STEP}}, {{RUN}}>"
SOURCES = sources(
    "conv2d/depthwise.cuh",
    [TEMPLATE.format(T="{T}", TAPS=taps, STEP=step, RUN=run) for run in RUNS for taps, step in (*UNROLLED, ANY)],
)


def launches(problem, config, input, weight, bias, out):
    taps, step = unrolled(problem, input)
    run = RUNS[problem.p > 7]
    columns = problem.n * ceil_div(problem.p, run) * problem.q
    yield CudaLaunch(
        SOURCES[problem.dtype],
        TEMPLATE.format(T=TYPES[problem.dtype], TAPS=taps, STEP=step, RUN=run),
        grid=(ceil_div(problem.k * columns, THREADS),),
        block=(THREADS, 1, 1),
        arguments=arguments(problem, input, weight, bias, out),
    )


DESIGN = Design(configs=lambda problem, target: [{"THREADS": THREADS}], launches=launches)
