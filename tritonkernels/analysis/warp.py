"""The phases of a warp's access to memory, of at most 128 bytes each.

Accesses of up to 4 bytes a lane go in one phase of 32 lanes, of 8 bytes in 2 half-warps, of 16 bytes in 4 quarter-warps (CUDA
C++ Programming Guide for global memory, Hands-on-GEMM for shared memory).
"""

from ..errors import ArgumentError

WARP = 32
WIDTHS = (1, 2, 4, 8, 16)


def phases(address, width):
    """The active lanes' byte addresses, one list for each phase.

    address  lane (0 to 31) -> byte address, or None for an inactive lane
    width    bytes per lane; addresses are multiples of it, as the hardware requires
    """
    if width not in WIDTHS:
        raise ArgumentError("width", width, f"{', '.join(map(str, WIDTHS))} bytes per lane", "Pass one of these.")
    addresses = [address(lane) for lane in range(WARP)]
    for lane, at in enumerate(addresses):
        if at is not None and at % width:
            raise ArgumentError("address", f"{at} in lane {lane}", f"multiples of the access width, {width} bytes", "Align it.")
    lanes = min(WARP, 128 // width)
    return [[at for at in addresses[first : first + lanes] if at is not None] for first in range(0, WARP, lanes)]
