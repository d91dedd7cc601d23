"""Tiles of output positions times KT output channels of a group, as `direct` and `prefetched` have them: their number, the best
KT, and their shared memory (halo.cuh)."""

from tritonkernels.conv2d.parts.regime import TILE, halo_bytes

from ...launch import ceil_div

SPACE = [{"KT": 8}, {"KT": 4}, {"KT": 16}]
THREADS = TILE[0] * TILE[1]


def tile_bytes(problem):
    """Of a channel's halo. Rows are loaded in 16-byte vectors, so they may begin up to 16 bytes less one element earlier."""
    return halo_bytes(problem, TILE, 16, before=16 // problem.dtype.itemsize - 1)


def count_tiles(problem, tile, kt):
    """The number of tiles (struct Tile)."""
    tiles = ceil_div(problem.p, tile[0]) * ceil_div(problem.q, tile[1])
    return problem.n * problem.groups * ceil_div(problem.k // problem.groups, kt) * tiles


def covering(problem, space):
    """The configs, with the smallest KT that covers a group's output channels first, else the largest."""
    ordered = sorted(space, key=lambda config: config["KT"])
    first = next((config for config in ordered if config["KT"] >= problem.k // problem.groups), ordered[-1])
    return [first, *(config for config in space if config != first)]
