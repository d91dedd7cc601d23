"""Several programs share a tile of the result: each sums its range of K, and their partial sums go through a workspace."""

import math
from typing import Any, NamedTuple

import torch

from ...config import config_of
from ...gemm.parts.splits import ALONE, split_counts
from ...integers import ceil_div
from ...language.triton import tl, triton
from .space import count_tiles


class Splits(NamedTuple):
    """The partial sums (TILES, SPLIT_K, BLOCK_M, BLOCK_N), and the products of each: k_per_split, a multiple of BLOCK_K."""

    ptr: Any
    k_per_split: Any
    SPLIT_K: Any

    @classmethod
    def of(cls, tiles, k, numbers, dtype, device):
        """With a workspace for so many tiles; `numbers` are the config's. The last splits have fewer products, or none."""
        split_k, block_k = numbers["SPLIT_K"], numbers["BLOCK_K"]
        workspace = torch.empty((tiles, split_k, numbers["BLOCK_M"], numbers["BLOCK_N"]), dtype=dtype, device=device)
        return cls(workspace, ceil_div(ceil_div(k, block_k), split_k) * block_k, tl.constexpr(split_k))


def split_configs(numbers, problem, target, spills=None, **options):
    """A config for each number of splits: one, and those whose partial sums one program can add up, but for one that spills, of
    (BLOCK_M, BLOCK_N, SPLIT_K)."""
    block = numbers["BLOCK_M"], numbers["BLOCK_N"]
    for split_k in (1, *split_counts(count_tiles(problem, numbers, problem.batch), problem.k, target)):
        if split_k == 1 or (4 * split_k * math.prod(block) <= ALONE and (*block, split_k) != spills):
            yield config_of(numbers | {"SPLIT_K": split_k}, **options)


@triton.jit
def range_of_k(splits, split, K):
    """(first, end) of a split's range of K, which is empty if those before it have all; of the only one if splits is None."""
    if splits is None:
        return 0, K
    else:
        first = split * splits.k_per_split
        return first, max(first, min(first + splits.k_per_split, K))


@triton.jit
def place_of(splits, tile, first_row, ROWS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Pointers to ROWS rows of a tile's first split."""
    within = (first_row + tl.arange(0, ROWS))[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    return splits.ptr + tile.to(tl.int64) * (splits.SPLIT_K * BLOCK_M * BLOCK_N) + within
