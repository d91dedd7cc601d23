"""GEMV, block_per_row: the configs and launches of block_per_row.cuh. A block of WARPS warps takes a row."""

from tritonkernels.operations.gemv.shapes import UNROLL

from ..launch import Kernel, configs_of
from .parts.kernel import design_of_rows

SPACE = configs_of("WARPS UNROLL", (8, UNROLL), (4, UNROLL))
DESIGN = design_of_rows(
    Kernel("gemv::block_per_row<{A}, {X}, {WARPS}, {UNROLL}, {SHIFTED}>", SPACE),
    threads=lambda config: 32 * config["WARPS"],
    lanes=lambda config: 32 * config["WARPS"],
)
