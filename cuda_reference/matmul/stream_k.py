"""Matrix product, stream-K: the configs and launches of stream_k.cuh."""

import functools
import itertools

from tritonkernels.choice.work import MANY, streamed
from tritonkernels.design import Design
from tritonkernels.matmul.parts.work import of_streams
from tritonkernels.workspace import counters, partial_sums

from ..launch import Kernel, ceil_div, configs_of
from .parts.space import in_order, tiles
from .persistent import (
    CASES,
    SIZES,
    SLICE,
    SPACE,
    as_taken,
    block_tile,
    fitting,
    packs,
    prepared,
    refuses,
    shared_bytes,
    takes_one_across_k,
    variants,
)

_SPACE = (*SPACE, *configs_of("BM BN CONSUMERS STAGES GROUP", (64, 128, 1, 8, 8)))  # the last for weights that few rows use
_LEAST = 4  # slices of a block: fewer take less time than a part of the tile
_TEMPLATE = f"matmul::stream_k<{SIZES}, {CASES}>"


def configs(problem, target):
    """2 WAVES where that is another cut than 1; more PARTS where there are tiles too few for MANY each to fill the GPU."""
    blocks = target.sms or 3
    for config, waves, parts in itertools.product(fitting(problem, target, in_order(_SPACE, target)), (2, 1), (MANY, 128)):
        count = problem.batch * tiles(problem, config["BM"], config["BN"])
        cuts_others = waves == 1 or streamed(count, blocks, 1) < streamed(count, blocks, 2)
        if cuts_others and (parts == MANY or MANY * count < blocks):
            yield config | {"BLOCKS": blocks, "WAVES": waves, "PARTS": parts}


def cut(problem, config, batch):
    """(whole tiles, the others, the blocks that share these). Of many parts, each tile has the same number: its runs end where
    those of its neighbours do, so that all are at the same k at a time, and find what they have in common in L2."""
    count = batch * tiles(problem, config["BM"], config["BN"])
    slices, blocks = ceil_div(problem.k * problem.dtype.itemsize, SLICE), config["BLOCKS"]
    left = streamed(count, blocks, config["WAVES"]) if slices else 0
    sharers = min(blocks, max(left, min(left * slices // _LEAST, left * config["PARTS"])))
    return count - left, left, sharers - (sharers % left if sharers > MANY * left else 0)


def _launches(problem, config, a, b, c, bias, out, *scales):
    problem, a, b, c, bias, out = as_taken(problem, config, a, b, c, bias, out)
    across = takes_one_across_k(problem, config)
    copies, given, parameters = prepared(problem, config, a, b, c, bias, out, *scales, b_across_k=across)
    yield from copies
    whole, left, sharers = cut(problem, config, out.shape[0])
    parts = arrivals = None
    if left != sharers:  # a cut goes through a tile
        parts = partial_sums(2 * sharers, config["BM"] * config["BN"], out)
        arrivals = counters((2 * sharers + left) * config["CONSUMERS"], out)
    yield Kernel(_TEMPLATE, variants(problem)).launch(
        parameters,
        (max(sharers, min(config["BLOCKS"], whole)),),
        (config["CONSUMERS"] + 1) * 128,
        (*given, parts, arrivals, whole, sharers),
        shared_bytes(config) + 16,  # a flag of each consumer
    )


def _sharers(problem, config):
    return cut(problem, config, problem.batch)[2]


@functools.cache
def _work(itemsize):
    return of_streams(lambda config: block_tile(config, itemsize) | {"waves": config["WAVES"]}, packs, sharers=_sharers)


def work(problem, config, target):
    return _work(problem.dtype.itemsize)(*as_taken(problem, config), config, target)


DESIGN = Design(refuses=refuses, configs=configs, launches=_launches, work=work)
