"""The orders in which numbered blocks compute the tiles of C: iterables of (tile row, tile column)."""

from itertools import product


def row_major(tiles_m, tiles_n):
    """Along N first: waves are flat, one row of tiles wide."""
    return product(range(tiles_m), range(tiles_n))


def grouped(tiles_m, tiles_n, group_m):
    """group_m rows of tiles at a time, column by column, as language.tiles.grouped_tile; 1 is row-major."""
    for first in range(0, tiles_m, group_m):
        rows = range(first, min(first + group_m, tiles_m))
        yield from ((m, n) for n in range(tiles_n) for m in rows)


def z_order(tiles_m, tiles_n):
    """Tiles by interleaved bits of row and column (Morton order): every aligned run of 4**i blocks is a square."""
    return iter(sorted(row_major(tiles_m, tiles_n), key=lambda tile: 2 * _spread(tile[0]) + _spread(tile[1])))


def _spread(x):
    """The bits of x moved to the even places: the same digits, read in base 4."""
    return int(f"{x:b}", 4)
