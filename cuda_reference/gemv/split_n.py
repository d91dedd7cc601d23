"""GEMV, split_n: the configs and launches of split_n.cuh. SPLITS blocks of WARPS warps share a row.

SPLITS is no template argument, so that any number works without a new build.
"""

from tritonkernels.design import Design
from tritonkernels.gemv.parts.regime import UNROLL, splits_of_row
from tritonkernels.gemv.parts.vectors import full_vector
from tritonkernels.workspace import counters, partial_sums

from ..launch import Kernel, ceil_div
from .parts.kernel import rows_of, streaming, strides, typed

SPACE = ({"WARPS": 8, "UNROLL": UNROLL},)
KERNEL = Kernel("gemv::split_n<{A}, {X}, {WARPS}, {UNROLL}>", SPACE)


def configs(problem, target):
    """The number of splits that fills the GPU first."""
    for splits in dict.fromkeys((splits_of_row(problem, target), 2, 16, 64)):
        yield from streaming((config | {"SPLITS": splits} for config in SPACE), problem, target)


def launches(problem, config, a, x, y, scale, out):
    (_, m, n), rows, splits, vector = a.shape, rows_of(a), config["SPLITS"], full_vector(a.dtype)
    columns = ceil_div(ceil_div(n, splits), vector) * vector  # whole vectors, so that all splits are aligned alike
    shared = partial_sums(splits, rows, out), counters(rows, out)
    numbers = rows, m, n, columns, problem.alpha, problem.beta
    arguments = a, x, y, scale, out, *shared, *numbers, strides(a, x, y, scale, out), config["STREAMS"]
    yield KERNEL.launch(typed(problem, config), (rows, splits), 32 * config["WARPS"], arguments)


DESIGN = Design(configs=configs, launches=launches)
