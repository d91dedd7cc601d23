"""The L2 hit rate of a blocked GEMM's reads.

The blocks of a wave walk K in step. So in each step, each tile row of A and each tile column of B is read from DRAM once,
however many blocks use it.
"""

from collections import OrderedDict


def effective_bandwidth(hit, l2_bandwidth, dram_bandwidth):
    """hit * l2_bandwidth + (1 - hit) * dram_bandwidth, bytes/s."""
    return hit * l2_bandwidth + (1 - hit) * dram_bandwidth


def wave_hit_rate(bm, bn, rows, cols, blocks=None):
    """1 - (rows BM + cols BN) / (blocks (BM + BN)): a wave of `blocks` blocks over `rows` tile rows and `cols` columns.

    A flat wave is rows = 1: 92 blocks (46 SMs x 2) of 128 x 128 hit 49.46 %. The squarer, the better.
    """
    blocks = rows * cols if blocks is None else blocks
    return 1 - (rows * bm + cols * bn) / (blocks * (bm + bn))


def covered(tiles):
    """(rows, cols): how many distinct tile rows and columns (row, column) pairs have, such as one wave of an order."""
    tiles = list(tiles)
    return len({m for m, _ in tiles}), len({n for _, n in tiles})


def best_rows(bm, bn, blocks):
    """The tile rows with the best hit rate for a wave of `blocks` blocks, the fewest on a tie: a first guess of GROUP_M."""
    return max(range(1, blocks + 1), key=lambda rows: wave_hit_rate(bm, bn, rows, -(-blocks // rows), blocks))


def simulate(problem, bm, bn, bk, order, wave, capacity):
    """Share of the bytes read from A and B that hit in an L2 of `capacity` bytes with LRU replacement, 0 if nothing is read.

    `order` gives each block's (tile row, tile column); `wave` blocks at a time walk K together, each reading its slice of A,
    then of B. The cache keeps whole slices (BM x BK of A, BK x BN of B, cut at the edges) from wave to wave, so a launch may
    do better than its waves alone. Writes of C are ignored. The simulation does one lookup for each block, operand and slice of
    K.
    """
    blocks = list(order)
    cache = OrderedDict()  # slice -> its bytes, the least recently used first
    held = total = hits = 0
    for start in range(0, len(blocks), wave):
        for k in range(0, problem.k, bk):
            depth = min(bk, problem.k - k) * problem.dtype.itemsize
            for m, n in blocks[start : start + wave]:
                for key, length in ((("A", m, k), min(bm, problem.m - m * bm)), (("B", n, k), min(bn, problem.n - n * bn))):
                    size = length * depth
                    total += size
                    if key in cache:
                        hits += size
                        cache.move_to_end(key)
                    else:
                        cache[key] = size
                        held += size
                        while held > capacity:
                            held -= cache.popitem(last=False)[1]
    return hits / total if total else 0.0
