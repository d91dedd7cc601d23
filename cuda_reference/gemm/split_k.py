"""FP32 GEMM, split_k: the configs and launches of split_k.cuh."""

from tritonkernels.design import Design
from tritonkernels.operations.gemm.float32_only import float32_only
from tritonkernels.operations.gemm.split_counts import (
    ALONE,
    SPLITS,
    groups_of,
    of_slices,
    one_by_one,
    split_counts,
    without_empty,
)
from tritonkernels.operations.gemm.work import of_splits
from tritonkernels.workspace import counters, partial_sums

from ..launch import Kernel, ceil_div, in_order
from .parts.configs import SEED, SMALL, count_tiles, each, tiles
from .parts.launches import arguments, block_tile, group, instance, threads, with_vector
from .parts.packed_rows import may_pack_rows

# What a tile computes beyond the edge of the result is for nothing: of 64 x 512 half of what tiles of 128 x 128 compute.
# These have 4 blocks of 128 threads an SM, 16 warps, and 40 to 100 KB of slices under way, where 30 KB keep DRAM busy.
THIN = (
    (64, 64, 16, 8, 4),  # up to 64 rows: SMALL with 32 FFMA for 12 words of fragments a k, instead of 16 for 8
    (32, 128, 16, 4, 8),  # up to 32 rows, for which 128 FFMA a clock just take as long as the bytes of B, 16 FLOP each
    (16, 128, 32, 4, 4),  # up to 16 rows, for which they wait for B: a long slice, of 18 KB
    (64, 32, 32, 4, 4),  # up to 32 columns: 128 bytes of a row of A at a time
    (32, 32, 32, 4, 4),  # 4 KB of sums: 64 splits of a result that is one tile or a few
)
TILES = tiles(SEED, *THIN, SMALL, GROUP=1)
SPACE = [c for c in each(TILES, SPLITS=SPLITS) if 4 * c["BM"] * c["BN"] * one_by_one(c["SPLITS"]) <= ALONE]
KERNEL = Kernel("gemm::split_k<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}, {SHIFTED}>", with_vector(TILES))


def configs(problem, target):
    counts = split_counts(count_tiles(problem, TILES[0]), problem.k, target)
    return [c for c in in_order(SPACE, target) if c["SPLITS"] in counts and of_slices(c["SPLITS"], _slices(problem, c))]


def _slices(problem, config):
    return max(1, ceil_div(problem.k, config["BK"]))


def _splits(problem, config):
    """(how many there are, slices of each)."""
    slices = _slices(problem, config)
    splits = without_empty(config["SPLITS"], slices)
    return splits, ceil_div(slices, splits)


def launches(problem, config, a, b, c, out):
    (splits, slices), blocks = _splits(problem, config), count_tiles(problem, config)
    partial = arrivals = None
    if splits > 1:
        partial = partial_sums(splits, blocks * config["BM"] * config["BN"], out)
        arrivals = counters(blocks * (1 + groups_of(splits)), out)
    given = *arguments(problem, a, b, c, out), group(problem, config), partial, arrivals, slices * config["BK"]
    yield KERNEL.launch(config | instance(a, b, out), (blocks, splits), threads(config), given)


def _tile(config):
    return block_tile(config, holds_slices=True)


DESIGN = may_pack_rows(
    Design(
        refuses=float32_only,
        configs=configs,
        launches=launches,
        work=of_splits(_tile, lambda problem, config: _splits(problem, config)[0], one_by_one),
    )
)
