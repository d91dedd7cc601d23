"""Sectors (32 bytes, the unit of L2 and DRAM) that a warp's access to global memory touches.

A request here is one phase: 1, 2 or 4 for 4, 8 or 16 bytes a lane. (Nsight Compute counts one request per instruction, so its
sectors per request are our sum.)
"""

from .warp import phases

SECTOR = 32


def sectors(address, width=4):
    """Distinct sectors of each request of the access lane -> byte address, `width` bytes per lane.

    32 consecutive floats are 4; 5 if they start off a sector's edge; stride 2 makes 8, a stride of 8 floats or more 32.
    """
    return [len({at // SECTOR for at in phase}) for phase in phases(address, width)]


def efficiency(address, width=4):
    """Distinct bytes requested over bytes moved (32 per sector and request); 1 if no lane is active."""
    used = sum(width * len(set(phase)) for phase in phases(address, width))
    moved = SECTOR * sum(sectors(address, width))
    return used / moved if moved else 1.0
