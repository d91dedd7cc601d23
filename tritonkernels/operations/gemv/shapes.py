"""The shapes that fill a GPU: blocks that share a row, tiles of contiguous columns.

Designs offer these and their neighbours. Pure functions of (problem, target), for both packages.
"""

import math

from .vectors import full_vector

BLOCK = 256  # threads, where a block shares a row or a column
UNROLL = 4  # loads in flight of a thread
BLOCKS_AT_ONCE = 4  # on an SM, of 64 registers a thread: 64 KB in flight


def streams(problem, target):
    """Whether A is marked to be evicted from L2 first, so that L2 keeps x and part of other matrices.

    True except for an A of a quarter to half of L2. It could stay for the next call, but evict-first lines displace other data
    slowly; a smaller A fits anyway.
    """
    return target.is_gpu and not target.l2_bytes < 4 * problem.matrix_bytes <= 2 * target.l2_bytes


def splits_of_row(problem, target):
    """Blocks per row in split_n: as many as fit on the GPU, while each has a round of loads. At least 2."""
    if not target.is_gpu:
        return 2
    wanted = target.sms * BLOCKS_AT_ONCE // max(1, problem.rows)
    rounds = math.ceil(problem.n / (BLOCK * UNROLL * full_vector(problem.a_dtype)))
    return max(2, min(wanted, rounds))


def counts_of_splits(problem, target):
    """Blocks per row that split_n may have: as many as fill the GPU, half and twice as many, and a few fixed numbers."""
    best = splits_of_row(problem, target)
    return list(dict.fromkeys((best, 2, 16, 64, max(2, best // 2), 2 * best)))


def tile_of_columns(problem, target):
    """(lanes, threads, splits) of transposed: vectors of rows side by side in a tile, threads of a block, blocks of a tile.

    8 lanes are a line of 128 bytes: the most tiles. More only where columns are too few for the other threads of the block.
    Blocks share a tile while that fills the GPU and leaves each thread two rounds of loads, and one of partial sums in the end.
    Where that means one tile an SM, one block with the threads of all of them does without partial sums (not for int8, whose
    tiles of 128 rows by so many threads outgrow shared memory).
    """
    lanes = next((lanes for lanes in (8, 32) if BLOCK // lanes <= problem.n), BLOCK)
    if not target.is_gpu:
        return lanes, BLOCK, 2
    tiles = problem.batch * math.ceil(problem.m / (lanes * full_vector(problem.a_dtype)))
    wanted = target.sms * BLOCKS_AT_ONCE // max(1, tiles)
    a_round = BLOCK // lanes * UNROLL
    splits = max(1, min(wanted, problem.n // (2 * a_round), a_round))
    if splits == wanted == BLOCKS_AT_ONCE and problem.a_dtype.itemsize > 1:
        return lanes, BLOCK * BLOCKS_AT_ONCE, 1
    return lanes, BLOCK, splits
