"""Where a tile of the weight is, whose groups bands.py of the operation divides into bands.

Mirrors cuda_reference/conv2d_weight/parts/bands.cuh.
"""

from typing import Any, NamedTuple

from ...language.triton import tl, triton


class Place(NamedTuple):
    """Where a tile begins: its first row, its first unit, and the first channel of its band's units; the rows of its band, from
    `begin` to `end`."""

    row: Any
    unit: Any
    channel: Any
    begin: Any
    end: Any


@triton.jit
def place_of(index, g, bands, M: tl.constexpr, UNITS: tl.constexpr, GROUPED: tl.constexpr):
    """The Place of a tile of M rows and so many units of columns. Tiles below each other are neighbours, which read the same
    inputs; then come the other taps and channels of the band. GROUPED, here and below: there are several groups."""
    row = index % bands.tiles_m * M
    across = index // bands.tiles_m
    if GROUPED:
        tiles_n = tl.cdiv(g.R * g.S * bands.chunks, UNITS)
        band = across // tiles_n
        begin = band * bands.rows
        channel = band * bands.channels // 8 * 8  # in chunks of 8, as copies need it
        return Place(begin // 8 * 8 + row, across % tiles_n * UNITS, channel, begin, min(begin + bands.rows, g.K))
    else:
        return Place(row, across * UNITS, 0, 0, g.K)


@triton.jit
def is_stored(place, k, c, tap, g, GROUPED: tl.constexpr):
    """Whether the weight has an element of row k and channel c of a tap in the tile's band: both of one group."""
    if GROUPED:
        return (k >= place.begin) & (k < place.end) & (k // g.k_per_group == c // g.c_per_group) & (tap < g.R * g.S)
    else:
        return (k < g.K) & ((c < g.C) & (tap < g.R * g.S))


@triton.jit
def within_group(c, g, GROUPED: tl.constexpr):
    return c % g.c_per_group if GROUPED else c
