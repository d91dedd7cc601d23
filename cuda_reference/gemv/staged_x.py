"""GEMV, staged_x: the configs and launches of staged_x.cuh. A block takes ROWS rows, a warp each, and STAGE elements of x."""

from ..launch import Kernel, configs_of
from .parts.kernel import lesson_of_rows

KERNEL = Kernel("gemv::staged_x<{ROWS}, {STAGE}>", configs_of("ROWS STAGE", (4, 1024), (8, 128)))
DESIGN = lesson_of_rows(KERNEL, threads=lambda config: 32 * config["ROWS"], rows=lambda config: config["ROWS"])
