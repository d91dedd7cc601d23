"""Loads and stores that say along which dimension of a tile its lanes lie, for addresses of which the compiler proves nothing.

It lays lanes along the dimension whose addresses it knows to be contiguous. Of pixels in rows of any width, and of channels
whose stride it does not know, it knows that of no dimension. Then Triton 3.6 takes the first dimension, and later ones take the
last. So tiles are turned round here, where that is the wrong one: turned back, the result has the same elements in the same
lanes, and turning moves no data.
"""

import triton as compiler

from ...backend import version
from ...language.triton import tl, triton

TIES_GO_FIRST = tl.constexpr(version(compiler) < (3, 7))


@triton.jit
def turned(tile):
    """The tile with its dimensions, two or three, in reverse."""
    return tl.trans(tile) if len(tile.shape) == 2 else tl.permute(tile, (2, 1, 0))


@triton.jit
def load_along(FIRST: tl.constexpr, ptr, offsets, mask):
    """What is at ptr + offsets, 0 where the mask is false. Lanes lie along the first dimension if FIRST, else the last."""
    if FIRST == TIES_GO_FIRST:
        return tl.load(ptr + offsets, mask=mask, other=0)
    else:
        return turned(tl.load(ptr + turned(offsets), mask=turned(mask), other=0))


@triton.jit
def store_along(FIRST: tl.constexpr, ptr, offsets, values, mask):
    """Store the values at ptr + offsets where the mask is true, with lanes as load_along has them."""
    if FIRST == TIES_GO_FIRST:
        tl.store(ptr + offsets, values, mask=mask)
    else:
        tl.store(ptr + turned(offsets), turned(values), mask=turned(mask))
