"""How warp_per_row.cuh is launched: a block takes ROWS rows, a warp each; the seed's blocks are (32, 4)."""

from ..launch import Kernel
from .parts.kernel import design_of_rows

KERNEL = Kernel("gemv::warp_per_row<{A}, {X}, {ROWS}>", ({"ROWS": 4}, {"ROWS": 8}))
DESIGN = design_of_rows(KERNEL, rows=lambda config: config["ROWS"], threads=lambda config: 32 * config["ROWS"])
