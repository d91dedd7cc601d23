"""Tiles of output positions times KT output channels of a group, as `direct` and `prefetched` have them: their number and
their shared memory (halo.cuh)."""

from tritonkernels.conv2d.parts.shapes import TILE, halo_bytes, tiles_of_outputs
from tritonkernels.conv2d.parts.work import of_outputs

from ...launch import configs_of

SPACE = configs_of("KT", (4,), (8,), (16,))
THREADS = TILE[0] * TILE[1]


def tile_bytes(problem):
    """Of a channel's halo. Rows are loaded in 16-byte vectors, so they may begin up to 16 bytes less one element earlier."""
    return halo_bytes(problem, TILE, 16, before=16 // problem.dtype.itemsize - 1)


def work_of_tiles(problem, config, target, steps, shared, tile=TILE, threads=THREADS):
    """Of a kernel whose blocks are tiles (struct Tile), with so many trips to memory."""
    kt = config["KT"]
    blocks, registers = tiles_of_outputs(problem, tile, kt), 40 + tile[0] * tile[1] * kt // threads
    given = blocks, threads, (*tile, 1), kt, steps
    return (of_outputs(problem, target, *given, registers=registers, shared=shared),)
