"""How a GPU's blocks share the tiles of a weight, each the sum over all positions, in slices of SLICE: pure functions.

Tiles are few and long: 114 of 813 slices, on 132 SMs. Whole waves of tiles are computed by a block each. Of the tiles left,
`heads` blocks each have the first slices of one, `head` of them, and the blocks that remain, the `sharers`, share the tails of
all those tiles. So all blocks have as many slices. The first heads of all tiles are at the same positions at a time, as are the
second ones, and L2 sends them what they have in common; what the tails read fits in L2. Runs of stream-K would be everywhere in
images that L2 cannot hold.
"""

from typing import NamedTuple

from ...integers import ceil_div

SLICE = 64  # positions: a row of shared memory for each
LEAST = 8  # slices of a head, and of a tail: fewer take less time than a part of the sums to write and to add (on tensor cores)


class Cut(NamedTuple):
    """Tiles in all, slices of each; tiles that a block computes whole; of each other one, heads, slices of a head, sharers of
    tails; blocks. Mirrors cuda_reference/conv2d_weight/parts/pieces.cuh, whose blocks are the grid."""

    tiles: int
    slices: int
    whole: int
    heads: int
    head: int
    sharers: int
    blocks: int

    @property
    def left(self):
        return self.tiles - self.whole

    @property
    def tail(self):
        """Slices of each tile after its heads."""
        return max(0, self.slices - self.heads * self.head)

    @property
    def parts(self):
        """The most parts of a tile: a tail is shorter than a sharer's run, so at most two have it."""
        return self.heads + 2 if self.sharers else self.heads

    @property
    def longest(self):
        """Slices of the block that has most."""
        shared = max(self.head, ceil_div(self.left * self.tail, self.sharers) if self.sharers else 0) if self.left else 0
        return ceil_div(self.whole, max(1, self.blocks)) * self.slices + shared


def cut(tiles, slices, blocks, least=LEAST):
    """How tiles are shared by so many blocks at a time."""
    left = tiles % blocks
    whole = tiles - left
    if not left:
        return Cut(tiles, slices, whole, 1, slices, 0, min(tiles, blocks))
    heads = max(1, min(blocks // left, slices // least))
    sharers = blocks - left * heads
    head = ceil_div(left * slices, blocks)
    tail = slices - heads * head
    if heads < blocks // left or min(head, tail) < least:  # enough blocks, or too little for them
        sharers, head = 0, ceil_div(slices, heads)
        heads = ceil_div(slices, head)  # none without a slice
    return Cut(tiles, slices, whole, heads, head, sharers, blocks if whole else left * heads + sharers)
