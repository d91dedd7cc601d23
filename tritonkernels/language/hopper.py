"""What the kernels of Hopper's lessons share: structs of arguments, operands in boxes for TMA, and how sums are written."""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier

from .renamed import barrier, load_box
from .structs import Matrix
from .tiles import grouped_tile


class Product(NamedTuple):
    """alpha A B + beta C, of M x N over K."""

    M: Any
    N: Any
    K: Any
    alpha: Any
    beta: Any


class Tile(NamedTuple):
    """Constants: M and N of a tile, K of a slice, how many slices have places, and which operands' boxes lie along K."""

    BLOCK_M: Any
    BLOCK_N: Any
    BLOCK_K: Any
    STAGES: Any
    A_ALONG_K: Any = None
    B_ALONG_K: Any = None


class Operand(NamedTuple):
    """A or B: its TMA descriptor, and places for boxes in shared memory."""

    boxes: Any
    places: Any


@gluon.jit
def tiles_in(product: Product, tile: Tile):
    return gl.cdiv(product.M, tile.BLOCK_M) * gl.cdiv(product.N, tile.BLOCK_N)


@gluon.jit
def corner(index, product: Product, tile: Tile):
    """(first row, first column) of a tile. Tiles are counted in groups of 8 rows of tiles, column by column."""
    tiles_m = gl.cdiv(product.M, tile.BLOCK_M)
    tile_m, tile_n = grouped_tile(index, tiles_m, gl.cdiv(product.N, tile.BLOCK_N), 8)
    return tile_m * tile.BLOCK_M, tile_n * tile.BLOCK_N


@gluon.jit
def operand(boxes, PLACES: gl.constexpr):
    """The Operand of a descriptor, with so many places."""
    return Operand(boxes, gl.allocate_shared_memory(boxes.dtype, [PLACES] + boxes.block_type.shape, boxes.layout))  # noqa: RUF005


@gluon.jit
def barriers_for(NUMBER: gl.constexpr, ARRIVALS: gl.constexpr):
    """NUMBER mbarriers, whose phases end after ARRIVALS arrivals; all warps and TMA see them."""
    barriers = gl.allocate_shared_memory(gl.int64, [NUMBER, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUMBER):
        mbarrier.init(barriers.index(i), count=ARRIVALS)
    fence_async_shared()
    barrier()
    return barriers


@gluon.jit
def copy_box(operand: Operand, row, k, full, place, ALONG_K: gl.constexpr, pred=True):
    """Ask TMA for the box of an operand from (row, k) on: it fills the place, and counts its bytes on `full`."""
    if ALONG_K:
        load_box(operand.boxes, [row, k], full, operand.places.index(place), pred)
    else:
        load_box(operand.boxes, [k, row], full, operand.places.index(place), pred)


@gluon.jit
def rows_by_k(operand: Operand, place, ALONG_K: gl.constexpr):
    """The box in a place, with the rows of its operand first: wgmma reads 16-bit operands in either order."""
    box = operand.places.index(place)
    return box if ALONG_K else box.permute((1, 0))


@gluon.jit
def store_sums(acc, row, col, c: Matrix, out: Matrix, product: Product):
    """Write alpha acc + beta C to the part of the tile at (row, col) that lies inside. C is None where beta is 0. 32 columns at
    a time: all sums and as many elements of C do not fit into a thread's registers."""
    if acc.shape[1] > 32:
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        store_sums(left, row, col, c, out, product)
        store_sums(right, row, col + HALF, c, out, product)
    else:
        rows = row + gl.arange(0, acc.shape[0], gl.SliceLayout(1, acc.type.layout))[:, None]
        cols = col + gl.arange(0, acc.shape[1], gl.SliceLayout(0, acc.type.layout))[None, :]
        inside = (rows < product.M) & (cols < product.N)
        result = product.alpha * acc
        if c is not None:
            result += product.beta * gl.load(c.ptr + rows * c.row + cols * c.col, mask=inside, other=0).to(gl.float32)
        gl.store(out.ptr + rows * out.row + cols * out.col, result.to(out.ptr.dtype.element_ty), mask=inside)
