"""GEMV, naive: the configs and launches of naive.cuh. A block takes THREADS rows."""

from ..launch import Kernel, configs_of
from .parts.kernel import design_of_rows

KERNEL = Kernel("gemv::naive<{A}, {X}, {THREADS}>", configs_of("THREADS", (128,), (32,)))
DESIGN = design_of_rows(KERNEL, threads=lambda config: config["THREADS"], lanes=lambda config: 1)
