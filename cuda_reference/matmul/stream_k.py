"""Matrix product, stream-K: the configs and launches of stream_k.cuh."""

import functools
import itertools

from tritonkernels.choice.work import MANY, streamed
from tritonkernels.design import Design
from tritonkernels.operations.matmul.work import of_streams
from tritonkernels.workspace import counters, partial_sums

from ..launch import Kernel, ceil_div, in_order, resident
from .parts.wgmma_tiles import DEEP, IN_CLUSTERS, LARGE, SMALL, legal, sums
from .persistent import (
    CASES,
    SIZES,
    SLICE,
    as_taken,
    block_bytes,
    block_tile,
    packs,
    prepared,
    refuses,
    takes_one_across_k,
    tiles_of_clusters,
    variants,
)

_MOST = 128  # sums of a thread: more leave no registers for those of a tile's parts
_LEAST = 4  # slices of a block: fewer take less time than a part of the tile
_TEMPLATE = f"matmul::stream_k<{SIZES}, {{CLUSTER}}, {{SHARE_A}}, {CASES}>"


def configs(problem, target):
    """Large tiles, also in clusters, and small ones, of which DEEP[0] is for weights that few rows use."""
    for config in (*in_order([*LARGE, SMALL[0], DEEP[0]], target), *IN_CLUSTERS):
        if sums(config) <= _MOST and legal(config, problem, target):
            yield from in_runs(problem, config, resident(target, config.get("CLUSTER", 1)))


def in_runs(problem, config, blocks):
    """The config with so many BLOCKS: 2 WAVES where that is another cut than 1; PARTS above MANY, as many for each tile as for
    the others, where there are two or more, and more or others than MANY."""
    count, clusters = problem.batch * tiles_of_clusters(problem, config), blocks // config.get("CLUSTER", 1)
    for waves, parts in itertools.product((2, 1), (MANY, 128)):
        cuts_others = waves == 1 or streamed(count, clusters, 1) < streamed(count, clusters, 2)
        others = 2 * count <= clusters and (MANY * count < clusters or clusters % count)
        if cuts_others and (parts == MANY or others):
            yield config | {"BLOCKS": blocks, "WAVES": waves, "PARTS": parts}


def cut(problem, config, batch):
    """(whole tiles, the others, the blocks that share these), all of clusters. Of PARTS above MANY each tile has the same
    number: its runs end where those of its neighbours do, so that all are at the same k at a time, and find what they have in
    common in L2."""
    count, cluster = batch * tiles_of_clusters(problem, config), config.get("CLUSTER", 1)
    slices, blocks = ceil_div(problem.k * problem.dtype.itemsize, SLICE), config["BLOCKS"] // cluster
    left = streamed(count, blocks, config["WAVES"]) if slices else 0
    sharers = min(blocks, max(left, min(left * slices // _LEAST, left * config["PARTS"])))
    return count - left, left, sharers - (sharers % left if left and config["PARTS"] > MANY else 0)


def shared_tiles(problem, config, consumers, out):
    """(blocks, and the kernel's arguments: parts of tiles, counters of them, whole tiles, the blocks that share others)."""
    whole, left, sharers = cut(problem, config, out.shape[0])
    cluster, parts, arrivals = config.get("CLUSTER", 1), None, None
    if left != sharers:  # a cut goes through a tile
        parts = partial_sums(2 * sharers * cluster, config["BM"] * config["BN"], out)
        arrivals = counters((2 * sharers + left) * cluster * consumers, out)
    return cluster * max(sharers, min(config["BLOCKS"] // cluster, whole)), parts, arrivals, whole, sharers


def _launches(problem, config, a, b, c, bias, out, *scales):
    problem, a, b, c, bias, out = as_taken(problem, config, a, b, c, bias, out)
    across = takes_one_across_k(problem, config)
    copies, given, parameters = prepared(problem, config, a, b, c, bias, out, *scales, b_across_k=across)
    yield from copies
    blocks, *shares = shared_tiles(problem, config, config["CONSUMERS"], out)
    yield Kernel(_TEMPLATE, variants(problem, config)).launch(
        parameters,
        (blocks,),
        (config["CONSUMERS"] + 1) * 128,
        (*given, *shares),
        block_bytes(problem, config, parameters) + 16,  # a flag of each consumer
    )


def blocks_that_share(problem, config):
    """The blocks that share tiles."""
    return cut(problem, config, problem.batch)[2] * config.get("CLUSTER", 1)


@functools.cache
def _work(itemsize):
    return of_streams(
        lambda config: block_tile(config, itemsize) | {"waves": config["WAVES"]}, packs, sharers=blocks_that_share
    )


def work(problem, config, target):
    return _work(problem.dtype.itemsize)(*as_taken(problem, config), config, target)


DESIGN = Design(refuses=refuses, configs=configs, launches=_launches, work=work)
