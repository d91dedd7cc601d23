"""The config space of the blocked designs: tiles whose accumulators fit in registers."""

import functools

from ...choice.work import BY_DOT
from ...config import config_of
from ...integers import ceil_div

# (BLOCK_M, BLOCK_N, BLOCK_K, num_warps), biggest first: at most 64 accumulators a thread, which also holds fragments of A and B
TILES = ((128, 128, 16, 8), (128, 64, 16, 4), (64, 128, 16, 4), (64, 64, 32, 4), (32, 64, 32, 4), (32, 32, 32, 4))


def count_tiles(problem, tile):
    """How many tiles of BLOCK_M x BLOCK_N cover the result."""
    return ceil_div(problem.m, tile["BLOCK_M"]) * ceil_div(problem.n, tile["BLOCK_N"])


def block_tile(config):
    """The block tile of a config in the analysis' terms."""
    tile = {"BM": config.kwargs["BLOCK_M"], "BN": config.kwargs["BLOCK_N"], "BK": config.kwargs.get("BLOCK_K", 1)}
    group = {"GROUP_M": config.kwargs["GROUP_M"]} if "GROUP_M" in config.kwargs else {}
    return {**tile, **group, "threads": 32 * config.num_warps, "stages": max(1, config.num_stages), **BY_DOT}


def blocked_configs(problem, target, num_stages, **constants):
    """A config per tile and number of stages; for the interpreter, whose cost is per tile operation, a big tile first."""
    if not target.is_gpu:
        yield config_of({"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 64, **constants})
    yield from _of_tiles(num_stages, *constants.items())


@functools.cache
def _of_tiles(num_stages, *constants):
    tiles = [(dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), tile), **dict(constants)), num_warps) for *tile, num_warps in TILES]
    return [config_of(tile, num_warps=num_warps, num_stages=stages) for tile, num_warps in tiles for stages in num_stages]
