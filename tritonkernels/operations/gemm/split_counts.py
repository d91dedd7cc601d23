"""How many splits of K the configs of split_k have, in both packages: gemm's and matmul's."""

from ...integers import ceil_div

LEAST = 256  # products of a split: with fewer it costs more than it brings
LEAST_BYTES = 512  # of a row's K in a split
SPLITS = (2, 4, 8, 16, 32, 64, 128)
ALONE = 2**18  # bytes of a tile's partial sums that one SM reads from L2 while a second kernel would start
MOST = 4  # blocks of an SM that the splits of few tiles make
MOST_UNDER_WAY = 128  # registers of a thread: with more of them an SM holds fewer blocks while they multiply, too
GROUP = 8  # CUDA adds up more than two such groups of parts in two rounds: cuda_reference/common/add_splits.cuh


def split_counts(tiles, k, target):
    """2, 4, and more powers of two, of LEAST products each at least, while the tiles are few blocks."""
    return [s for s in SPLITS if s <= 4 or (s * LEAST <= k and s * tiles <= MOST * target.sms)]


def counts_for(tiles, powers, problem, block_k, target):
    """The powers of split_counts that K has slices for, and so many splits that blocks of so many tiles are one for each SM,
    two, or up to MOST, or as many as have LEAST_BYTES, none of them empty: 288 blocks on 132 SMs take as long as 396."""
    most = min(SPLITS[-1], problem.k * problem.dtype.itemsize // LEAST_BYTES)
    filling = [min(most, blocks * target.sms // tiles) for blocks in range(1, MOST + 1)] if tiles else []
    slices = ceil_div(problem.k, block_k)  # none of alpha = 0, which may have the configs of other factors
    found = [power for power in powers if power <= slices or not slices]
    return sorted({*found, *(without_empty(splits, slices) for splits in filling if splits > 1)})


def splits_that_fill(tiles, k, programs):
    """Numbers of splits whose pieces of all tiles fill one wave of programs, two or three, or have LEAST products each, but
    only if that takes less time than fewer: in shares of what a program does for a whole tile."""
    fewest = ceil_div(tiles, programs)
    for waves in (1, 2, 3):
        splits = min(k // LEAST, waves * programs // tiles if tiles else 0)
        if splits > 1 and ceil_div(tiles * splits, programs) / splits < fewest:
            fewest = ceil_div(tiles * splits, programs) / splits
            yield splits


def few_blocks(blocks, target):
    """Whether an SM has MOST of them at most."""
    return blocks <= MOST * target.sms or not target.is_gpu


def of_slices(splits, slices):
    """Whether K has that many slices. Two splits are always legal, since every problem has a config."""
    return splits <= max(2, slices)


def without_empty(splits, slices):
    """The number of splits, or the fewer that so many slices make, with the same number of slices each but for the last."""
    return ceil_div(slices, ceil_div(slices, min(splits, slices)))


def at_once(splits, sums, threads, itemsize=4):
    """How many splits the threads of a Triton program read at once, to add up the sums of a tile or of some of its rows."""
    return min(splits, max(1, 4 * MOST_UNDER_WAY * threads // (sums * itemsize)))


def groups_of(parts):
    """The groups that have a sum of their own, if any."""
    return ceil_div(parts, GROUP) if parts > 2 * GROUP else 0


def one_by_one(parts):
    """The parts that are read one after the other."""
    groups = groups_of(parts)
    return GROUP + groups if groups else parts


def most_parts(turns):
    """The most parts of which no more than so many are read one after the other."""
    return max(turns, GROUP * (turns - GROUP))
