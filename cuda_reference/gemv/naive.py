"""GEMV, naive: the configs and launches of naive.cuh. A block takes THREADS rows."""

from ..launch import Kernel, configs_of
from .parts.kernel import lesson_of_rows

KERNEL = Kernel("gemv::naive<{THREADS}>", configs_of("THREADS", (128,), (32,)))
DESIGN = lesson_of_rows(KERNEL, threads=lambda config: config["THREADS"], rows=lambda config: config["THREADS"])
