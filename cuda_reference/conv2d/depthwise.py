"""conv2d, depthwise: the template instances and launches of depthwise.cuh."""

from tritonkernels.design import Design
from tritonkernels.operations.conv2d.work import of_outputs, strip

from ..launch import Kernel, ceil_div, configs_of
from .parts.operands import TYPES, arguments, followed, what_follows
from .parts.runs import ANY, UNROLLED, columns_at_once, inputs_at_once, slides, unrolled

THREADS, RUNS = 128, (7, 14)
SPACE = configs_of("THREADS RUN", *((THREADS, run) for run in RUNS))
KERNEL = Kernel(
    "conv2d::depthwise<{T}, {THREADS}, {TAPS}, {STEP}, {RUN}>",
    [{"TAPS": taps, "STEP": step, "RUN": run} for run in RUNS for taps, step in (*UNROLLED, ANY)],
)
FOLLOWED = followed(KERNEL)


def launches(problem, config, input, weight, bias, out, residual=None):
    taps, step = unrolled(problem, input)
    parameters = {"T": TYPES[problem.dtype], "TAPS": taps, "STEP": step, **config}
    given = *arguments(problem, input, weight, bias, out), *what_follows(problem, residual)
    yield (FOLLOWED if problem.after else KERNEL).launch(parameters, (count_blocks(problem, config),), THREADS, given)


def count_blocks(problem, config):
    columns = problem.n * ceil_div(problem.p, config["RUN"]) * problem.q
    return ceil_div(problem.k * columns, THREADS)


def configs(problem, target):
    return SPACE


def work(problem, config, target):
    run = config["RUN"]
    channels = min(max(1, problem.k), THREADS) if problem.channels_last else 1
    piece = strip(problem, run, ceil_div(THREADS, channels))
    given = count_blocks(problem, config), THREADS, piece, channels
    steps = problem.c // problem.groups * columns_at_once(problem, slides(problem))
    registers = 32 + run + inputs_at_once(problem, run, slides(problem))
    return (of_outputs(problem, target, *given, steps, outputs=run * THREADS, registers=registers),)


DESIGN = Design(configs=configs, launches=launches, work=work)
