"""Blocks that share rows: each writes its partial sums to a workspace, and the last to arrive adds them up, in one launch."""

from .triton import tl, triton


@triton.jit
def last_to_arrive(counter_ptr, splits):
    """Whether this program arrives last of `splits`; it then sees the others' stores, and the counter is zero again."""
    tl.debug_barrier()  # all of this program's partial sums are written
    arrived = tl.atomic_add(counter_ptr, 1, sem="acq_rel", scope="gpu")
    last = arrived == splits - 1
    if last:
        tl.atomic_xchg(counter_ptr, 0, sem="relaxed")
    return last


@triton.jit
def sum_of_splits(places, valid, splits, stride, BLOCK_S: tl.constexpr):
    """The sum of all splits' partial sums, `stride` apart from `places` on, BLOCK_S at a time by all threads in a fixed order.

    One at a time, hundreds of them would take longer than the whole product, because each is a trip to L2.
    """
    at = tl.arange(0, BLOCK_S)
    places = places[None, :] + (at * stride)[:, None]
    total = tl.zeros(places.shape, places.dtype.element_ty)
    for first in range(0, splits, BLOCK_S):
        inside = (first + at < splits)[:, None] & valid[None, :]
        total += tl.load(places, mask=inside, other=0, cache_modifier=".cg")
        places += BLOCK_S * stride
    return tl.sum(total, axis=0)


@triton.jit
def sum_in_order(place, SIZE: tl.constexpr, splits, AT_ONCE: tl.constexpr):
    """The sum of all splits' partial sums, SIZE apart from `place` on; AT_ONCE of them are in flight together, in registers."""
    total = tl.zeros(place.shape, place.dtype.element_ty)
    for first in range(0, splits, AT_ONCE):
        for ahead in tl.static_range(AT_ONCE):
            total += tl.load(place + ahead * SIZE, mask=first + ahead < splits, other=0, cache_modifier=".cg")
        place += AT_ONCE * SIZE
    return total
