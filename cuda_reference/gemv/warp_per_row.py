"""GEMV, warp_per_row: the configs and launches of warp_per_row.cuh. A block takes ROWS rows, a warp each: 4 in the write-up."""

from ..launch import Kernel, configs_of
from .parts.kernel import lesson_of_rows

KERNEL = Kernel("gemv::warp_per_row<{ROWS}>", configs_of("ROWS", (4,), (8,)))
DESIGN = lesson_of_rows(KERNEL, threads=lambda config: 32 * config["ROWS"], rows=lambda config: config["ROWS"])
