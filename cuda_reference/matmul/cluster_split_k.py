"""Matrix product, split-K in a cluster: the configs and launches of cluster_split_k.cuh."""

import functools

from tritonkernels.design import Design
from tritonkernels.operations.matmul.work import of_tiles

from ..launch import Kernel, ceil_div, configs_of, in_order
from . import persistent
from .parts.space import tiles
from .parts.wgmma_tiles import legal
from .persistent import SIZES, SLICE, packs_for_tma, prepared, variants

_SPACE = configs_of(
    "BM BN CONSUMERS STAGES GROUP",
    (64, 64, 1, 8, 8),
    (64, 128, 1, 7, 8),
    (128, 64, 2, 7, 8),
    (128, 128, 2, 4, 8),
    (64, 64, 1, 5, 8),  # two of an SM, as in persistent
)
_SPLITS = (2, 3, 4, 6, 8)
_WAVES = 2  # of blocks at most: with more there are tiles enough
_TEMPLATE = (
    f"matmul::cluster_split_k<{SIZES}, {{SPLIT_K}}, {{A_BY_K}}, {{B_BY_K}}, {{PROMOTES}}, matmul::{{SCALES}}, {{SCALED}}>"
)


def shared_bytes(config):
    """Per block: STAGES slices of both operands, where the sums of a tile go, too, and two 8-byte mbarriers per stage."""
    return config["STAGES"] * (SLICE * (config["BM"] + config["BN"]) + 16)


def _blocks(problem, config, batch):
    return batch * tiles(problem, config["BM"], config["BN"]) * config["SPLIT_K"]


def configs(problem, target):
    """2 splits, and more with a slice for each while their blocks are not too many."""
    slices = ceil_div(problem.k * problem.dtype.itemsize, SLICE)
    space = [config for config in in_order(_SPACE, target) if legal(config, problem, target, shared_bytes)]
    for splits in _SPLITS:
        for config in space:
            config = config | {"SPLIT_K": splits}
            few = splits <= slices and _blocks(problem, config, problem.batch) <= _WAVES * target.sms
            if splits == 2 or few or not target.is_gpu:
                yield config


def _launches(problem, config, a, b, c, bias, out, *scales):
    copies, given, parameters = prepared(problem, config, a, b, c, bias, out, *scales)
    yield from copies
    blocks, threads = _blocks(problem, config, out.shape[0]), (config["CONSUMERS"] + 1) * 128
    yield Kernel(_TEMPLATE, variants(problem, config)).launch(parameters, (blocks,), threads, given, shared_bytes(config))


@functools.cache
def _work(itemsize):
    return of_tiles(lambda config: persistent.block_tile(config, itemsize) | {"splits": config["SPLIT_K"]}, packs_for_tma)


def work(problem, config, target):
    """What it sends stays on the chip."""
    *copies, kernel = _work(problem.dtype.itemsize)(problem, config, target)
    return *copies, kernel._replace(steps=kernel.steps + 2, cluster=config["SPLIT_K"])


DESIGN = Design(refuses=persistent.refuses, configs=configs, launches=_launches, work=work)
