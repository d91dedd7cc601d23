"""An L2 with LRU replacement, simulated slice by slice: what analysis.l2 has in closed form is checked against it."""

from collections import OrderedDict


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
