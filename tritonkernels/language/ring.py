"""A ring of slices in shared memory that one warp or warpgroup fills and others read: its places, and how a slice is announced.

Slices that threads copy (cp.async) these threads announce, some slices later: so many are on their way at any time.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier

from .renamed import barrier


@gluon.jit
def next_place(at, phase, STAGES: gl.constexpr):
    """The place in the ring after this one, and the phase of its barriers: counted on, since what a division of the number of
    slices takes is time in which nothing is multiplied."""
    last = at == STAGES - 1
    return gl.where(last, 0, at + 1), gl.where(last, phase ^ 1, phase)


@gluon.jit
def announce(full, at, before: gl.constexpr, waiting: gl.constexpr, slices, STAGES: gl.constexpr):
    """The slice of `before` slices ago is full, for all warps and for wgmma, once only `waiting` groups are on their way."""
    async_copy.wait_group(waiting)
    fence_async_shared()
    barrier()
    place = gl.where(at >= before, at - before, at - before + STAGES)
    mbarrier.arrive(full.index(place), pred=slices >= before)


@gluon.jit
def announce_last(full, at, AHEAD: gl.constexpr, slices, STAGES: gl.constexpr):
    """The slices still on their way are full, one after the other; `at` is the place after the last one's."""
    for i in gl.static_range(AHEAD):
        announce(full, at, AHEAD - i, AHEAD - i - 1, slices, STAGES)
