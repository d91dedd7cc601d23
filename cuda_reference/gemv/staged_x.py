"""GEMV, staged_x: the configs and launches of staged_x.cuh. A block takes ROWS rows of a matrix, a warp each."""

from tritonkernels.design import Design
from tritonkernels.gemv.parts.work import along_rows

from ..launch import Kernel, ceil_div, configs_of
from .parts.kernel import SCALARS, strides, typed

SPACE = configs_of("ROWS STAGE", (4, 1024), (8, 128))
KERNEL = Kernel("gemv::staged_x<{A}, {X}, {ROWS}, {STAGE}>", SPACE)


def configs(problem, target):
    return SPACE


def launches(problem, config, a, x, y, scale, out):
    batch, m, n = a.shape
    blocks = batch * ceil_div(m, config["ROWS"])
    arguments = a, x, y, scale, out, m, n, problem.alpha, problem.beta, strides(a, x, y, scale, out)
    yield KERNEL.launch(typed(problem, config), (blocks,), 32 * config["ROWS"], arguments)


def work(problem, config, target):
    """A stage of x is waited for, then the loads of A begin."""
    rows, stages = config["ROWS"], ceil_div(problem.n, config["STAGE"])
    one = along_rows(problem, 32 * rows, rows, 32, 1, SCALARS, tiles=problem.batch * ceil_div(problem.m, rows))
    return (one._replace(steps=one.steps + stages, shared=max(4, problem.dtype.itemsize) * config["STAGE"]),)


DESIGN = Design(configs=configs, launches=launches, work=work)
