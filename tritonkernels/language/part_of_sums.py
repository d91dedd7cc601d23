"""A program's part of the sums of a tile that several programs share, as Gluon kernels write it to a workspace."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

LINES = gl.constexpr(32)  # columns that a warp stores together


@gluon.jit
def store_part(acc, FIRST: gl.constexpr, tile_ptr, row, col, tile):
    """The sums of a consumer, which begin at (row, col) of the tile; FIRST of their columns are stored."""
    if acc.shape[1] > LINES:
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        store_part(left, FIRST, tile_ptr, row, col, tile)
        store_part(right, FIRST + HALF, tile_ptr, row, col, tile)
    else:
        LAYOUT: gl.constexpr = acc.type.layout
        rows = row + gl.arange(0, acc.shape[0], gl.SliceLayout(1, LAYOUT))
        cols = col + FIRST + gl.arange(0, acc.shape[1], gl.SliceLayout(0, LAYOUT))
        gl.store(tile_ptr + (rows[:, None] * tile.N + cols[None, :]), acc)
