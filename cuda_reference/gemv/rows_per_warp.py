"""GEMV, rows_per_warp: the configs and launches of rows_per_warp.cuh. A block takes THREADS / LANES rows."""

from tritonkernels.operations.gemv.shapes import UNROLL

from ..launch import Kernel, configs_of
from .parts.kernel import design_of_rows

SPACE = configs_of("LANES THREADS UNROLL", *((lanes, 128, UNROLL) for lanes in (1, 2, 4, 8, 16)))
DESIGN = design_of_rows(
    Kernel("gemv::rows_per_warp<{A}, {X}, {LANES}, {THREADS}, {UNROLL}, {SHIFTED}>", SPACE),
    threads=lambda config: config["THREADS"],
    lanes=lambda config: config["LANES"],
)
