"""GEMV, vectorized: the configs and launches of vectorized.cuh. A block takes ROWS rows, a warp each."""

from ..launch import Kernel
from .parts.kernel import design_of_rows

KERNEL = Kernel("gemv::vectorized<{A}, {X}, {ROWS}, {UNROLL}>", ({"ROWS": 4, "UNROLL": 4}, {"ROWS": 8, "UNROLL": 2}))
DESIGN = design_of_rows(
    KERNEL,
    threads=lambda config: 32 * config["ROWS"],
    lanes=lambda config: 32,
    streams=True,
)
