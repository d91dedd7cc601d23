"""Tiles of `direct` and `prefetched` (halo.cuh): their config space and the shared memory that a halo takes."""

from tritonkernels.conv2d.parts.regime import TILE, halo_bytes

SPACE = [{"KT": 8}, {"KT": 4}, {"KT": 16}]
THREADS = TILE[0] * TILE[1]


def tile_bytes(problem):
    """Of a channel's halo; its rows may begin up to a piece of 16 bytes, less one element, earlier."""
    return halo_bytes(problem, TILE, 16, before=16 // problem.dtype.itemsize - 1)
