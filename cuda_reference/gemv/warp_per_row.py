"""How warp_per_row.cuh is launched: a block takes ROWS rows, a warp each; the seed's blocks are (32, 4)."""

from tritonkernels.design import Design

from ..launch import ceil_div
from .parts.kernel import Kernel, row_arguments, rows_of

SPACE = ({"ROWS": 4}, {"ROWS": 8})
KERNEL = Kernel("warp_per_row", "{ROWS}", SPACE)


def configs(problem, target):
    return SPACE


def launches(problem, config, a, *others):
    blocks = ceil_div(rows_of(a), config["ROWS"])
    yield KERNEL.launch(problem, config, (blocks,), 32 * config["ROWS"], *row_arguments(problem, a, *others))


DESIGN = Design(configs=configs, launches=launches)
