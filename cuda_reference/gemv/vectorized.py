"""GEMV, vectorized: the configs and launches of vectorized.cuh. A block takes ROWS rows, a warp each."""

from ..launch import Kernel, configs_of
from .parts.kernel import design_of_rows

KERNEL = Kernel("gemv::vectorized<{A}, {X}, {ROWS}, {UNROLL}, {SHIFTED}>", configs_of("ROWS UNROLL", (4, 4), (8, 2)))
DESIGN = design_of_rows(
    KERNEL,
    threads=lambda config: 32 * config["ROWS"],
    lanes=lambda config: 32,
)
