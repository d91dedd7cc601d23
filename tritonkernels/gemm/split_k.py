"""FP32 GEMM, split-K: SPLIT_K programs share a tile, each sums its own range of K, and a second kernel adds their sums up.

Where M and N are small and K is large there are fewer tiles than SMs: 256 x 256 x 65536 in tiles of 64 x 64 is 16 programs on
132 SMs. Splitting K gives every SM work at the price of SPLIT_K partial results, written and read once: 8 M N SPLIT_K bytes.

The partial sums go through a workspace and are added in the order of k, never by atomics: the same bits every time.
Mirrors cuda_reference/gemm/split_k.cuh, which the seed names as future work.
"""

import torch

from ..design import Design
from ..integers import ceil_div
from ..language.structs import Matrix
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..problem import needs_wide_offsets
from .parts.float32_only import float32_only
from .parts.space import block_tile, blocked_configs, count_tiles
from .parts.tile import rows_and_cols, store_tile, tile_product
from .parts.work import of_splits


@triton.jit
def _partial_kernel(
    a: Matrix, b: Matrix, workspace, M, N, K, k_per_split,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A tile's sums over one range of K, into workspace (SPLIT_K, M, N), contiguous. k_per_split is a multiple of BLOCK_K."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    split = tl.program_id(0) // tiles
    rows, cols = rows_and_cols(tl.program_id(0) % tiles, N, BLOCK_M, BLOCK_N, WIDE)
    first_k = split * k_per_split
    end_k = min(first_k + k_per_split, K)
    acc = tile_product(a, b, rows, cols, first_k, end_k, M, N, BLOCK_K, WIDE)
    if WIDE:
        split = split.to(tl.int64)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(workspace + (split * M + rows[:, None]) * N + cols[None, :], acc, mask=inside)


@triton.jit
def _reduce_kernel(
    workspace, c: Matrix, out: Matrix, M, N, alpha, beta,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SPLIT_K: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    rows, cols = rows_and_cols(tl.program_id(0), N, BLOCK_M, BLOCK_N, WIDE)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    slice_rows = rows  # of split 0; stepping by M rows a split keeps every product of indices 64-bit where WIDE
    for _ in range(SPLIT_K):
        acc += tl.load(workspace + slice_rows[:, None] * N + cols[None, :], mask=inside, other=0)
        slice_rows += M
    store_tile(acc, c, out, rows, cols, M, N, alpha, beta)


SPLITS = (2, 4, 8, 16, 32, 64)
LEAST = 256  # products of a split: with fewer it costs more than it brings


def configs(problem, target):
    for split_k in SPLITS:
        if split_k == 2 or split_k * LEAST <= problem.k:
            yield from blocked_configs(problem, target, num_stages=(2,), SPLIT_K=split_k)


def launches(problem, config, a, b, c, out):
    m, n, tile, split_k = problem.m, problem.n, config.kwargs, config.kwargs["SPLIT_K"]
    workspace = torch.empty((split_k, m, n), dtype=torch.float32, device=out.device)
    wide = problem.wide or needs_wide_offsets(workspace)
    k_per_split = ceil_div(ceil_div(problem.k, tile["BLOCK_K"]), split_k) * tile["BLOCK_K"]
    operands = Matrix.of(a), Matrix.of(b), workspace, m, n, problem.k, k_per_split
    yield TritonLaunch(_partial_kernel, (count_tiles(problem, tile) * split_k,), config, *operands, WIDE=wide)
    operands = workspace, Matrix.of(c), Matrix.of(out), m, n, problem.alpha, problem.beta
    grid = (count_tiles(problem, REDUCE.kwargs),)
    yield TritonLaunch(_reduce_kernel, grid, REDUCE, *operands, SPLIT_K=split_k, WIDE=wide)


REDUCE = triton.Config({"BLOCK_M": 16, "BLOCK_N": 64}, num_warps=4, num_stages=1)


def tile(config):
    return block_tile(config) | {"splits": config.kwargs["SPLIT_K"]}


def _blocks(problem):
    return count_tiles(problem, REDUCE.kwargs)


DESIGN = Design(refuses=float32_only, configs=configs, launches=launches, work=of_splits(tile, 16 * 64, 128, _blocks))
