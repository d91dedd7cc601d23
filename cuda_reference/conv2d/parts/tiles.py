"""Tiles of output positions times KT output channels of a group: how many there are, which KT comes first, and the shared
memory of those of `direct` and `prefetched` (halo.cuh)."""

from tritonkernels.conv2d.parts.regime import TILE, halo_bytes

from ...launch import ceil_div

SPACE = [{"KT": 8}, {"KT": 4}, {"KT": 16}]
THREADS = TILE[0] * TILE[1]


def tile_bytes(problem):
    """Of a channel's halo; its rows may begin up to a piece of 16 bytes, less one element, earlier."""
    return halo_bytes(problem, TILE, 16, before=16 // problem.dtype.itemsize - 1)


def count_tiles(problem, tile, kt):
    """How many there are of struct Tile."""
    tiles = ceil_div(problem.p, tile[0]) * ceil_div(problem.q, tile[1])
    return problem.n * problem.groups * ceil_div(problem.k // problem.groups, kt) * tiles


def covering(problem, space):
    """The configs; first the smallest KT that covers a group's output channels, else the largest."""
    ordered = sorted(space, key=lambda config: config["KT"])
    first = next((config for config in ordered if config["KT"] >= problem.k // problem.groups), ordered[-1])
    return [first, *(config for config in space if config != first)]
