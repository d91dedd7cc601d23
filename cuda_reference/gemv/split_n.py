"""GEMV, split_n: the configs and launches of split_n.cuh. SPLITS blocks of WARPS warps share a row.

SPLITS is no template argument, so that any number works without a new build.
"""

from tritonkernels.design import Design
from tritonkernels.operations.gemv.shapes import UNROLL, counts_of_splits
from tritonkernels.operations.gemv.vectors import full_vector
from tritonkernels.operations.gemv.work import along_rows
from tritonkernels.workspace import counters, partial_sums

from ..launch import Kernel, ceil_div, configs_of
from .parts.kernel import loads, rows_of, shifted, streaming, strides, typed

SPACE = configs_of("WARPS UNROLL", (8, UNROLL))
KERNEL = Kernel("gemv::split_n<{A}, {X}, {WARPS}, {UNROLL}, {SHIFTED}>", SPACE)


def configs(problem, target):
    for splits in counts_of_splits(problem, target):
        yield from streaming((config | {"SPLITS": splits} for config in SPACE), problem, target)


def launches(problem, config, a, x, y, scale, out):
    (_, m, n), rows, splits, vector = a.shape, rows_of(a), config["SPLITS"], full_vector(a.dtype)
    columns = ceil_div(ceil_div(n, splits), vector) * vector  # whole vectors, so that all splits are aligned alike
    shared = partial_sums(splits, rows, out), counters(rows, out)
    numbers = rows, m, n, columns, problem.alpha, problem.beta
    arguments = a, x, y, scale, out, *shared, *numbers, strides(a, x, y, scale, out), config["STREAMS"]
    yield KERNEL.launch(typed(problem, config) | {"SHIFTED": shifted(a, x)}, (rows, splits), 32 * config["WARPS"], arguments)


def work(problem, config, target):
    threads = 32 * config["WARPS"]
    return (along_rows(problem, threads, 1, threads, *loads(problem, config), config["SPLITS"]),)


DESIGN = Design(configs=configs, launches=launches, work=work)
