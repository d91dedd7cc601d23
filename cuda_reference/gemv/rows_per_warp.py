"""How rows_per_warp.cuh is launched: a block takes THREADS / LANES rows."""

from tritonkernels.design import Design
from tritonkernels.gemv.parts.regime import UNROLL, sub_warp

from ..launch import ceil_div
from .parts.kernel import Kernel, row_arguments, rows_of, streaming

SPACE = tuple({"LANES": lanes, "THREADS": 128, "UNROLL": UNROLL} for lanes in (1, 2, 4, 8, 16))
KERNEL = Kernel("rows_per_warp", "{LANES}, {THREADS}, {UNROLL}", SPACE)


def configs(problem, target):
    """The lanes nearest to `sub_warp` come first."""
    nearest = sorted(SPACE, key=lambda config: abs(config["LANES"] - sub_warp(problem)))
    return streaming(nearest, problem, target)


def launches(problem, config, a, *others):
    blocks, threads = ceil_div(rows_of(a), config["THREADS"] // config["LANES"]), config["THREADS"]
    yield KERNEL.launch(problem, config, (blocks,), threads, *row_arguments(problem, a, *others), config["STREAMS"])


DESIGN = Design(configs=configs, launches=launches)
