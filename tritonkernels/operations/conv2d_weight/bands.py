"""How tiles cover the weight of a convolution in groups: pure functions, for both packages' warp_specialized.

As a matrix of all K output channels by all C input channels of a tap the weight is block-diagonal: only channels of one group
meet. A tile of 64 x 64 of it holds several small groups, of which what lies between groups is multiplied, but not stored. A
band is as many neighbouring groups as have up to 64 channels on either side, or one larger group; tiles are of one band each.
Bands of groups of 24 channels have two of them: 2.4 products for each one that is needed, on tensor cores, and each box of
channels is fetched for two groups.

Boxes begin at multiples of CHUNK channels, as copies of 16 bytes need it. So a band's first box may begin with channels of the
band before it.
"""

from typing import NamedTuple

from ...integers import ceil_div

BOX, CHUNK = 64, 8  # channels


class Bands(NamedTuple):
    """Output and input channels of a band; tiles of it below each other; boxes of channels of a tap. Mirrors Bands of
    cuda_reference/conv2d_weight/parts/bands.cuh."""

    rows: int
    channels: int
    tiles_m: int
    chunks: int


def bands_and_tiles(problem, tile_m, tile_n, box=BOX):
    """(the Bands, the number of tiles of the whole weight); columns are units of `box` channels of a tap."""
    together = _together(problem)
    rows, channels = (_reach(problem, together, size) for size in (problem.k, problem.c))
    found = Bands(
        problem.k // problem.groups * together,
        problem.c // problem.groups * together,
        ceil_div(rows, tile_m),
        ceil_div(channels, box),
    )
    across = ceil_div(problem.r * problem.s * found.chunks * box, tile_n)
    return found, ceil_div(problem.groups, together) * found.tiles_m * across


def boxes_without_rows(problem, tile_m):
    """How many boxes of the last tile of a band have none of its rows."""
    return -_reach(problem, _together(problem), problem.k) % tile_m // BOX


def _together(problem):
    """The groups of a band."""
    sizes = problem.k, problem.c
    fit = (n for n in range(min(problem.groups, BOX), 1, -1) if all(_reach(problem, n, size) <= BOX for size in sizes))
    return next(fit, 1)


def _reach(problem, together, size):
    """The channels of so many groups of `size` channels in all, and those before them that their first box may begin with."""
    channels = size // problem.groups * together
    return channels + (CHUNK - 1 if together < problem.groups and channels % CHUNK else 0)
