"""Which slices of which tiles a program multiplies, as pieces.py shares them; cuda_reference/conv2d_weight/parts/pieces.cuh."""

from typing import Any, NamedTuple

from .triton import tl, triton


class Shares(NamedTuple):
    """The numbers of a Cut, which kernels take; `left` and `tail` are derived there."""

    slices: Any
    whole: Any
    left: Any
    heads: Any
    head: Any
    tail: Any
    sharers: Any

    @classmethod
    def of(cls, cut):
        return cls(cut.slices, cut.whole, cut.left, cut.heads, cut.head, cut.tail, cut.sharers)


@triton.jit
def _begin(sharer, cut):
    """Where a sharer's run begins, in slices of all tails."""
    return tl.cast(cut.left, tl.int64) * cut.tail * sharer // max(cut.sharers, 1)


@triton.jit
def _sharer_of(slice, cut):
    return ((slice + 1) * cut.sharers - 1) // max(tl.cast(cut.left, tl.int64) * cut.tail, 1)


@triton.jit
def count_pieces(program, programs, cut):
    """(whole tiles, all pieces) of a program."""
    whole = tl.cdiv(max(cut.whole - program, 0), programs)
    sharer = program - cut.left * cut.heads
    begin, end = _begin(sharer, cut), _begin(sharer + 1, cut)
    tail = max(cut.tail, 1)
    tails = tl.cast((end - 1) // tail - begin // tail + 1, tl.int32)
    shared = tl.where(sharer < 0, 1, tl.where(sharer < cut.sharers, tails, 0))
    return whole, whole + shared


@triton.jit
def piece_of(index, whole, program, programs, cut):
    """(tile, first slice, how many, number among the tile's parts) of a program's piece, of which `whole` are whole tiles."""
    sharer = program - cut.left * cut.heads
    tail = max(cut.tail, 1)
    begin, end = _begin(sharer, cut), _begin(sharer + 1, cut)
    own = begin // tail + (index - whole)  # the tile of a tail, among those left
    first = tl.cast(max(begin - own * tail, 0), tl.int32)
    last = tl.cast(min(end - own * tail, tail), tl.int32)
    part = program // max(cut.left, 1)
    is_whole, is_head = index < whole, sharer < 0
    tile = tl.where(is_head, program % max(cut.left, 1), tl.cast(own, tl.int32)) + cut.whole
    start = tl.where(is_head, part * cut.head, cut.heads * cut.head + first)
    count = tl.where(is_head, min(cut.head, cut.slices - start), last - first)
    tile = tl.where(is_whole, program + index * programs, tile)
    part = tl.where(is_head, part, cut.heads + tl.cast(first > 0, tl.int32))
    return tile, tl.where(is_whole, 0, start), tl.where(is_whole, cut.slices, count), part


@triton.jit
def count_parts(tile, cut):
    """How many parts one of the tiles left has."""
    first = _sharer_of(tl.cast(tile, tl.int64) * cut.tail, cut)
    last = _sharer_of((tl.cast(tile, tl.int64) + 1) * cut.tail - 1, cut)
    return cut.heads + tl.cast(tl.where(cut.sharers > 0, last - first + 1, 0), tl.int32)
