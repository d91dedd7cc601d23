"""The L2 hit rate of a blocked GEMM's reads.

The blocks of a wave walk K in step. So in each step, each tile row of A and each tile column of B is read from DRAM once,
however many blocks use it.
"""


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
