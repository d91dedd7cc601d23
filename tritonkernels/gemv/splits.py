"""Blocks that share rows: each leaves its partial sums in a workspace, and the last to arrive adds them up, in one launch."""

import triton
import triton.language as tl


@triton.jit
def last_to_arrive(counter_ptr, splits):
    """Whether this program is the last of `splits`; its stores before are then seen after, and the counter is zero again."""
    tl.debug_barrier()  # all of this program's partial sums are written
    arrived = tl.atomic_add(counter_ptr, 1, sem="acq_rel", scope="gpu")
    last = arrived == splits - 1
    if last:
        tl.atomic_xchg(counter_ptr, 0, sem="relaxed")
    return last


@triton.jit
def sum_of_splits(workspace_ptr, mask, splits, stride):
    """The partial sums of splits 0, 1, ..., `stride` apart, added up in that order."""
    total = tl.load(workspace_ptr, mask=mask, other=0, cache_modifier=".cg")
    for _ in range(1, splits):
        workspace_ptr += stride
        total += tl.load(workspace_ptr, mask=mask, other=0, cache_modifier=".cg")
    return total
