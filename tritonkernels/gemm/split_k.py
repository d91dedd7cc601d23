"""FP32 GEMM, split-K: SPLIT_K programs share a tile, each sums its own range of K, and a second kernel adds their sums up.

Where M and N are small and K is large there are fewer tiles than SMs: 256 x 256 x 65536 in tiles of 64 x 64 is 16 programs on
132 SMs. Splitting K gives every SM work at the price of SPLIT_K partial results, written and read once: 8 M N SPLIT_K bytes.

The partial sums go through a workspace and are added in the order of k, never by atomics: the same bits every time.
Mirrors cuda_reference/gemm/split_k.cuh, which the seed names as future work.
"""

import torch
import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.tiles import span
from ..launch import TritonLaunch
from ..problem import needs_wide_offsets
from .arguments import gemm_arguments
from .space import blocked_configs, count_tiles
from .tile import store_tile, tile_product


@triton.jit
def _partial_kernel(
    a_ptr,  # (M, K)
    b_ptr,  # (K, N)
    workspace_ptr,  # (SPLIT_K, M, N), contiguous
    M,
    N,
    K,
    k_per_split,  # a multiple of BLOCK_K
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    split = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    rows = span(tile // tiles_n * BLOCK_M, BLOCK_M, WIDE)
    cols = span(tile % tiles_n * BLOCK_N, BLOCK_N, WIDE)
    first_k = split * k_per_split
    end_k = min(first_k + k_per_split, K)
    acc = tile_product(
        a_ptr, b_ptr, rows, cols, first_k, end_k, M, N, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_K, WIDE
    )
    if WIDE:
        split = split.to(tl.int64)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(workspace_ptr + (split * M + rows[:, None]) * N + cols[None, :], acc, mask=inside)


@triton.jit
def _reduce_kernel(
    workspace_ptr,  # (SPLIT_K, M, N), contiguous
    c_ptr,  # (M, N), None without HAS_C
    out_ptr,  # (M, N)
    M,
    N,
    alpha,
    beta,
    stride_cm,
    stride_cn,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLIT_K: tl.constexpr,
    HAS_C: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = span(tl.program_id(0) // tiles_n * BLOCK_M, BLOCK_M, WIDE)
    cols = span(tl.program_id(0) % tiles_n * BLOCK_N, BLOCK_N, WIDE)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    slice_rows = rows  # of split 0; stepping by M rows a split keeps every product of indices 64-bit where WIDE
    for _ in range(SPLIT_K):
        acc += tl.load(workspace_ptr + slice_rows[:, None] * N + cols[None, :], mask=inside, other=0)
        slice_rows += M
    store_tile(acc, c_ptr, out_ptr, rows, cols, M, N, alpha, beta, stride_cm, stride_cn, stride_om, stride_on, HAS_C)


def configs(problem, target):
    """Enough splits to give every SM two programs, as far as K allows; then powers of two around it."""
    smallest = min(count_tiles(problem, {"BLOCK_M": 64, "BLOCK_N": 64}), 2**30)
    wanted = triton.cdiv(2 * max(1, target.sms), max(1, smallest))
    most = max(1, problem.k // 256)  # a split of fewer than 256 products costs more than it brings
    first = triton.next_power_of_2(max(1, min(wanted, most, 64)))
    for split_k in dict.fromkeys((first, 4, 16)):
        yield from blocked_configs(problem, target, num_stages=(2,), enough_tiles=1 / split_k, SPLIT_K=split_k)


def launches(problem, config, a, b, c, out):
    arguments = gemm_arguments(problem, a, b, c, out)
    tile, split_k = config.kwargs, config.kwargs["SPLIT_K"]
    slices = triton.cdiv(problem.k, tile["BLOCK_K"])
    workspace = torch.empty((split_k, problem.m, problem.n), dtype=torch.float32, device=out.device)
    wide = problem.wide or needs_wide_offsets(workspace)
    k_per_split = triton.cdiv(slices, split_k) * tile["BLOCK_K"]
    shared = arguments | {"workspace_ptr": workspace, "WIDE": wide, "k_per_split": k_per_split}
    yield TritonLaunch(_partial_kernel, (count_tiles(problem, tile) * split_k,), config, shared)
    yield TritonLaunch(_reduce_kernel, (count_tiles(problem, REDUCE.kwargs),), REDUCE, shared | {"SPLIT_K": split_k})


REDUCE = triton.Config({"BLOCK_M": 16, "BLOCK_N": 64}, num_warps=4, num_stages=1)

DESIGN = Design(
    name="split_k",
    summary="several programs per tile, each with its range of K; partial sums added in a fixed order",
    mirrors="gemm seed: future work, split-K",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
