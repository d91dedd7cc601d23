"""Waves and the tail effect: as many blocks start together as the GPU holds; the last wave may leave SMs idle."""

from typing import NamedTuple


class Waves(NamedTuple):
    """`full` waves of `size` blocks, then one of `last` (0: none); `efficiency` is the share of their slots in use."""

    size: int
    full: int
    last: int
    efficiency: float


def waves(blocks, sms, blocks_per_sm):
    """size = sms * blocks_per_sm; efficiency = blocks / (waves, rounded up, * size), 1 where there are no blocks.

    All blocks are assumed to take equally long, so one block past a full wave costs a wave.
    """
    size = sms * blocks_per_sm
    full, last = divmod(blocks, size)
    rounded_up = full + (last > 0)
    return Waves(size, full, last, blocks / (rounded_up * size) if blocks else 1.0)
