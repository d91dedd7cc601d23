"""How vectorized.cuh is launched: a block takes ROWS rows, a warp each; a lane has UNROLL loads of A in flight."""

from tritonkernels.design import Design

from ..launch import ceil_div
from .parts.kernel import Kernel, row_arguments, rows_of, streaming

SPACE = ({"ROWS": 4, "UNROLL": 4}, {"ROWS": 8, "UNROLL": 2})
KERNEL = Kernel("vectorized", "{ROWS}, {UNROLL}", SPACE)


def configs(problem, target):
    return streaming(SPACE, problem, target)


def launches(problem, config, a, *others):
    blocks, threads = ceil_div(rows_of(a), config["ROWS"]), 32 * config["ROWS"]
    yield KERNEL.launch(problem, config, (blocks,), threads, *row_arguments(problem, a, *others), config["STREAMS"])


DESIGN = Design(configs=configs, launches=launches)
