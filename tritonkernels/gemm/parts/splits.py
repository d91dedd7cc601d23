"""How many splits of K the configs of split_k have, in both packages: gemm's and matmul's."""

LEAST = 256  # products of a split: with fewer it costs more than it brings
SPLITS = (2, 4, 8, 16, 32, 64)
ALONE = 2**18  # bytes of a tile's partial sums that one SM reads from L2 while a second kernel would start


def split_counts(tiles, k, target):
    """2, 4, and more powers of two, of LEAST products each at least, while the tiles are few blocks."""
    return [s for s in SPLITS if s <= 4 or (s * LEAST <= k and s * tiles <= 4 * target.sms)]


def without_empty(splits, slices):
    """So many splits, or the fewer ones that so many slices make, the same number each but for the last."""
    return -(-slices // -(-slices // min(splits, slices)))
