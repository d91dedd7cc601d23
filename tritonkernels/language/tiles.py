"""The tile of a program, and the indices along one axis of a tile."""

import math

from .structs import Matrices
from .triton import tl, triton


@triton.jit
def span(start, LENGTH: tl.constexpr, WIDE: tl.constexpr):
    """start, start + 1, ..., LENGTH of them; 64-bit where WIDE, so that index times stride cannot overflow."""
    index = start + tl.arange(0, LENGTH)
    if WIDE:
        index = index.to(tl.int64)
    return index


def multiple_of(number):
    """The power of two, up to 8, that divides a stride or size; 1 for multiples of 16, which Triton finds by itself."""
    return 1 if number % 16 == 0 else math.gcd(number, 8)


@triton.jit
def multiple(number, OF: tl.constexpr):
    """A stride or size, which is a multiple of OF, in a form that tells Triton so.

    Rows of 6392 halves are whole chunks of 16 bytes, but no multiple of 16: it would load each element on its own.
    """
    return number // OF * OF


@triton.jit
def known_multiples(x: Matrices, OF: tl.constexpr):
    """Matrices whose strides are multiples of those three, in a form that tells Triton so."""
    return Matrices(x.ptr, multiple(x.batch, OF[0]), multiple(x.row, OF[1]), multiple(x.col, OF[2]))


@triton.jit
def block_of(program, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """The indices of a program's block of BLOCK, of those that are counted along one axis."""
    if WIDE:
        program = program.to(tl.int64)
    return span(program * BLOCK, BLOCK, WIDE)


@triton.jit
def grouped_tile(program, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """(tile_m, tile_n) of a program, in groups of GROUP_M tile rows that are walked column by column, for reuse in L2.

    A wave of w programs then touches about GROUP_M tile rows of A and w / GROUP_M tile columns of B, instead of 1 and w.
    """
    group = program // (GROUP_M * tiles_n)
    first = group * GROUP_M
    rows = min(tiles_m - first, GROUP_M)
    within = program % (GROUP_M * tiles_n)
    return first + within % rows, within // rows
