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
def sum_in_order(place, SIZE: tl.constexpr, splits, AT_ONCE: tl.constexpr, REST: tl.constexpr = 0):
    """The sum of all splits' partial sums, SIZE apart from `place` on; AT_ONCE, at most all, are in flight together, in
    registers; REST are left after the last whole turn."""
    total = tl.load(place, cache_modifier=".cg")
    for split in tl.static_range(1, AT_ONCE):
        total += tl.load(place + split * SIZE, cache_modifier=".cg")
    for _ in range(AT_ONCE, splits - REST, AT_ONCE):
        place += AT_ONCE * SIZE
        for split in tl.static_range(AT_ONCE):
            total += tl.load(place + split * SIZE, cache_modifier=".cg")
    for split in tl.static_range(REST):
        total += tl.load(place + (AT_ONCE + split) * SIZE, cache_modifier=".cg")
    return total
