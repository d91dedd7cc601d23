"""How block_per_row.cuh is launched: a block of WARPS warps takes a row."""

from tritonkernels.design import Design
from tritonkernels.gemv.parts.regime import UNROLL, threads_of_row

from .parts.kernel import Kernel, row_arguments, rows_of, streaming

SPACE = ({"WARPS": 8, "UNROLL": UNROLL}, {"WARPS": 4, "UNROLL": UNROLL})
KERNEL = Kernel("block_per_row", "{WARPS}, {UNROLL}", SPACE)


def configs(problem, target):
    """As many threads as a row has rounds of UNROLL loads for come first."""
    nearest = sorted(SPACE, key=lambda config: 32 * config["WARPS"] != threads_of_row(problem))
    return streaming(nearest, problem, target)


def launches(problem, config, a, *others):
    threads = 32 * config["WARPS"]
    yield KERNEL.launch(problem, config, (rows_of(a),), threads, *row_arguments(problem, a, *others), config["STREAMS"])


DESIGN = Design(configs=configs, launches=launches)
