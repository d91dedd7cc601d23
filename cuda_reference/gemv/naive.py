"""How naive.cuh is launched: a block takes THREADS rows."""

from tritonkernels.design import Design

from ..launch import ceil_div
from .parts.kernel import Kernel, row_arguments, rows_of

SPACE = ({"THREADS": 128}, {"THREADS": 32})
KERNEL = Kernel("naive", "{THREADS}", SPACE)


def configs(problem, target):
    return SPACE


def launches(problem, config, a, *others):
    blocks = ceil_div(rows_of(a), config["THREADS"])
    yield KERNEL.launch(problem, config, (blocks,), config["THREADS"], *row_arguments(problem, a, *others))


DESIGN = Design(configs=configs, launches=launches)
