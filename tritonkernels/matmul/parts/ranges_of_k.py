"""Several programs share a tile of the result: each sums its range of K, and their partial sums go through a workspace."""

from typing import Any, NamedTuple

import torch

from ...config import config_of
from ...integers import ceil_div
from ...language.last_to_arrive import sum_in_order
from ...language.triton import tl, triton
from ...operations.gemm.split_counts import ALONE, at_once, split_counts
from .space import count_tiles


class Splits(NamedTuple):
    """The partial sums (TILES, SPLIT_K, BLOCK_M, BLOCK_N), the products of each: k_per_split, a multiple of BLOCK_K, and how
    many of them a program that adds them up has in flight; `number` is SPLIT_K, unknown to the compiler, which would unroll
    the loop over them."""

    ptr: Any
    k_per_split: Any
    number: Any
    SPLIT_K: Any
    AT_ONCE: Any

    @classmethod
    def of(cls, tiles, k, config, dtype, device):
        """The ranges with a workspace for so many tiles. The last splits have fewer products, or none."""
        numbers, split_k = config.kwargs, config.kwargs["SPLIT_K"]
        block_m, block_n, block_k = (numbers[f"BLOCK_{dimension}"] for dimension in "MNK")
        workspace = torch.empty((tiles, split_k, block_m, block_n), dtype=dtype, device=device)
        k_per_split = ceil_div(ceil_div(k, block_k), split_k) * block_k
        fitting = at_once(split_k, block_m * block_n, 32 * config.num_warps, dtype.itemsize)
        return cls(workspace, k_per_split, split_k, tl.constexpr(split_k), tl.constexpr(fitting))


@triton.jit
def added_up(splits, place, SIZE: tl.constexpr):
    """The sum of a tile's splits, or of some rows of it, in the order of K; `place` is the first one's."""
    number = splits.SPLIT_K if splits.SPLIT_K == splits.AT_ONCE else splits.number
    return sum_in_order(place, SIZE, number, splits.AT_ONCE, splits.SPLIT_K % splits.AT_ONCE)


def split_configs(numbers, problem, target, **options):
    """A config for each number of splits: one, and those whose partial sums one program can add up."""
    sums = numbers["BLOCK_M"] * numbers["BLOCK_N"]
    for split_k in (1, *split_counts(count_tiles(problem, numbers, problem.batch), problem.k, target)):
        if split_k == 1 or 4 * split_k * sums <= ALONE:
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
def first_of(splits, tile, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Where the sums of a tile's first split begin."""
    return splits.ptr + tile.to(tl.int64) * (splits.SPLIT_K * BLOCK_M * BLOCK_N)


@triton.jit
def place_of(splits, tile, first_row, ROWS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Pointers to ROWS rows of a tile's first split."""
    within = (first_row + tl.arange(0, ROWS))[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    return first_of(splits, tile, BLOCK_M, BLOCK_N) + within
