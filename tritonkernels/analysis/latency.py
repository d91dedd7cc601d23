"""Bandwidth against latency: a rate is sustained by what is in flight (Little's law, in flight = rate * latency).

Two sources of it multiply: warps (thread-level parallelism, TLP) and independent instructions within a warp (instruction-level
parallelism, ILP). Registers buy one for the other. A thread tile of 8 x 8 costs 128 of them, hence half the warps of an RTX
2080, but offers 64 independent multiply-adds per k: plenty, if their operands were fetched a step ahead (double buffering).
Without that, a load is hidden by other warps alone, and 4 warps per scheduler hide about 4 cycles.
"""

from math import ceil


def bytes_in_flight(bandwidth, latency):
    """bandwidth (bytes/s) * latency (s): 4.3 TB/s at 600 ns want 2.58 MB in flight on the whole GPU."""
    return bandwidth * latency


def loads_per_thread(in_flight, threads, width=16):
    """Loads of `width` bytes that each of `threads` threads keeps under way so that `in_flight` bytes are."""
    return ceil(in_flight / (threads * width))


def hidden_cycles(warps, ilp=1):
    """Cycles of latency that one scheduler fills, an instruction a cycle: warps * ilp, the independent instructions it has."""
    return warps * ilp


def warps_to_hide(cycles, ilp=1):
    """Warps per scheduler that hide a latency: cycles / ilp, rounded up."""
    return ceil(cycles / ilp)
