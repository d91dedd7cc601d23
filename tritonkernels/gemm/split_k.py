"""FP32 GEMM, split-K: SPLIT_K programs share a tile, each sums its own range of K, and the last of them adds their sums up.

Where M and N are small and K is large there are fewer tiles than SMs: 256 x 256 x 65536 in tiles of 64 x 64 is 16 programs on
132 SMs. Splitting K gives every SM work at the price of SPLIT_K partial results, written and read once: 8 M N SPLIT_K bytes.

The partial sums go through a workspace and are added in the order of k, never by atomics: the same bits every time. The last
program of a tile to finish reads all of them, so that there is no second launch; one SM reads 256 KB from L2 in the 2 us that
this would take, and no config has more: tiles of 64 x 64 have 16 splits at most, smaller ones more.
Mirrors cuda_reference/gemm/split_k.cuh, which the write-up names as future work.
"""

import functools

import torch

from ..config import config_of
from ..design import Design
from ..integers import ceil_div
from ..language.last_to_arrive import last_to_arrive, sum_in_order
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrix
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.gemm.float32_only import float32_only
from ..operations.gemm.split_counts import ALONE, of_slices, split_counts
from ..operations.gemm.work import UNDER_WAY, of_splits
from ..workspace import counters
from .parts.packed_b import may_pack_b
from .parts.space import block_tile, blocked_configs, count_tiles
from .parts.tile import blas, rows_and_cols, store_tile, tile_product


@triton.jit
def _split_kernel(
    a: Matrix, b: Matrix, c: Matrix, out: Matrix, M, N, K, alpha, beta, partial, counters, splits, k_per_split,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, AT_ONCE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """partial: (tiles, splits, BLOCK_M, BLOCK_N); counters: zeros, a tile's each; k_per_split: a multiple of BLOCK_K."""
    wait_for_earlier_kernels()
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    tile = tl.program_id(0) % tiles
    split = tl.program_id(0) // tiles
    rows, cols = rows_and_cols(tile, N, BLOCK_M, BLOCK_N, WIDE)
    first_k = split * k_per_split
    acc = tile_product(a, b, rows, cols, first_k, min(first_k + k_per_split, K), M, N, BLOCK_K, WIDE)
    within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    place = partial + tile.to(tl.int64) * (splits * BLOCK_M * BLOCK_N) + within
    tl.store(place + split * (BLOCK_M * BLOCK_N), acc)
    if last_to_arrive(counters + tile, splits):
        total = sum_in_order(place, BLOCK_M * BLOCK_N, splits, AT_ONCE)
        store_tile(total, c, out, rows, cols, M, N, alpha, beta)


# (BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages) for up to 32 rows, 16 rows and 16 columns: what a tile computes beyond the
# edge of the result is for nothing. With two slices under way, 20 or 37 KB, two programs an SM keep DRAM busy.
THIN = ((32, 128, 16, 4, 3), (16, 128, 32, 4, 3), (128, 16, 32, 4, 3))


def configs(problem, target):
    for split_k in split_counts(count_tiles(problem, {"BLOCK_M": 128, "BLOCK_N": 128}), problem.k, target):
        for config in (*blocked_configs(problem, target, num_stages=(2,), SPLIT_K=split_k), *_thin(split_k)):
            tile = config.kwargs
            few_bytes = 4 * tile["BLOCK_M"] * tile["BLOCK_N"] * split_k <= ALONE or not target.is_gpu
            if few_bytes and of_slices(split_k, ceil_div(problem.k, tile["BLOCK_K"])):
                yield config


@functools.cache
def _thin(split_k):
    names = "BLOCK_M", "BLOCK_N", "BLOCK_K"
    return [config_of(dict(zip(names, tile), SPLIT_K=split_k), warps, stages) for *tile, warps, stages in THIN]


def launches(problem, config, a, b, c, out):
    tile, split_k, tiles = config.kwargs, config.kwargs["SPLIT_K"], count_tiles(problem, config.kwargs)
    partial = torch.empty((tiles, split_k, tile["BLOCK_M"], tile["BLOCK_N"]), dtype=torch.float32, device=out.device)
    k_per_split = ceil_div(ceil_div(problem.k, tile["BLOCK_K"]), split_k) * tile["BLOCK_K"]
    given = *blas(problem, a, b, c, out), partial, counters(tiles, out), split_k, k_per_split
    at_once = max(1, min(split_k, UNDER_WAY * 32 * config.num_warps // (tile["BLOCK_M"] * tile["BLOCK_N"])))
    yield TritonLaunch(_split_kernel, (tiles * split_k,), config, *given, AT_ONCE=at_once, WIDE=problem.wide)


DESIGN = may_pack_b(
    Design(
        refuses=float32_only,
        configs=configs,
        launches=launches,
        work=of_splits(block_tile, lambda problem, config: config.kwargs["SPLIT_K"]),
    )
)
