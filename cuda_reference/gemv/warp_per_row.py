"""GEMV, warp_per_row: the configs and launches of warp_per_row.cuh. A block takes ROWS rows, a warp each: 4 in the seed."""

from ..launch import Kernel, configs_of
from .parts.kernel import design_of_rows

KERNEL = Kernel("gemv::warp_per_row<{A}, {X}, {ROWS}>", configs_of("ROWS", (4,), (8,)))
DESIGN = design_of_rows(KERNEL, threads=lambda config: 32 * config["ROWS"], lanes=lambda config: 32)
