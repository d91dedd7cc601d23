"""Arithmetic intensity of a tile.

The owner of rows x cols elements of C reads rows + cols operands per k for rows * cols multiply-adds: a thread (TM x TN) or a
warp (WM x WN) from shared memory, a block (BM x BN) from L2. The tile's depth cancels.
"""


def intensity(rows, cols, itemsize=4):
    """FLOP per byte: 2 rows cols / (itemsize (rows + cols)).

    In FP32 BM BN / (2 (BM + BN)): 16 at 64 x 64, 32 at 128 x 128. A warp of the naive kernel owns 1 x 32: 64 / 132 = 0.48.
    """
    return 2 * rows * cols / (itemsize * (rows + cols))


def required_bandwidth(rate, flop_per_byte):
    """Bytes per second that `rate` FLOP/s need at that intensity: 10.1 TFLOP/s at 16 FLOP per byte need 631.25 GB/s."""
    return rate / flop_per_byte
