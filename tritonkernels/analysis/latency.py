"""Bandwidth and latency: a rate needs enough in flight (Little's law, in flight = rate * latency).

What is in flight is the product of warps (thread-level parallelism, TLP) and independent instructions within a warp
(instruction-level parallelism, ILP). Registers trade one for the other. A thread tile of 8 x 8 needs 128 registers, so an RTX
2080 runs half its warps, but it has 64 independent multiply-adds per k: plenty, if their operands are fetched a step ahead
(double buffering). Without that, only other warps hide a load, and 4 warps per scheduler hide about 4 cycles.
"""


def bytes_in_flight(bandwidth, latency):
    """bandwidth (bytes/s) * latency (s): 4.3 TB/s at 600 ns need 2.58 MB in flight on the whole GPU."""
    return bandwidth * latency


def hidden_cycles(warps, ilp=1):
    """Cycles of latency that one scheduler hides at an instruction per cycle: warps * ilp independent instructions."""
    return warps * ilp
