"""Matrix product, split-K: SPLIT_K programs share a tile, each sums its own range of K, and a second kernel adds their sums up.

Where M and N are small and K is large there are fewer tiles than SMs: 256 x 256 x 65536 in tiles of 64 x 64 is 16 programs on
132 SMs. Splitting K gives every SM work at the price of SPLIT_K partial results, written and read once: 8 M N SPLIT_K bytes.

The partial sums go through a workspace and are added in the order of k, never by atomics: the same bits every time. The second
kernel also does what follows a product, so nothing is rounded before all of K is in.

Mirrors tritonkernels/gemm/split_k.py, the same for FP32 on CUDA cores.
"""

import torch
import triton
import triton.language as tl

from ..design import Design
from ..language.tiles import span
from ..launch import TritonLaunch
from ..problem import needs_wide_offsets
from .arguments import matmul_arguments, stored_k
from .operands import packed_operands, refuses_operands
from .space import count_tiles, packing, tile_configs, tiles_with_room, two_warpgroups_wait
from .tile import store_tile, tile_corner, tile_product

WORKSPACES = {"fp32": torch.float32, "fp16": torch.float32, "fp64": torch.float64, "int32": torch.int32}


@triton.jit
def _partial_kernel(
    a_ptr,  # (BATCH, M, K)
    b_ptr,  # (BATCH, K, N)
    workspace_ptr,  # (SPLIT_K, BATCH, M, N), contiguous
    batches,
    M,
    N,
    K,
    k_per_split,  # a multiple of BLOCK_K
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATE: tl.constexpr,
    ARE_TF32: tl.constexpr,
    WIDE: tl.constexpr,
):
    slab, row, col = tile_corner(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M, WIDE)  # slab: split * BATCH + batch
    batch = slab % batches
    first_k = (slab // batches).to(tl.int32) * k_per_split
    rows = span(row, BLOCK_M, WIDE)
    cols = span(col, BLOCK_N, WIDE)
    a_ptr += batch * stride_ab
    b_ptr += batch * stride_bb
    end_k = max(first_k, min(first_k + k_per_split, K))
    acc = tile_product(
        a_ptr, b_ptr, rows, cols, first_k, end_k, M, N, stride_am, stride_ak, stride_bk, stride_bn,
        BLOCK_K, PRECISION, ACCUMULATE, ARE_TF32, WIDE,
    )  # fmt: skip
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(workspace_ptr + (slab * M + rows[:, None]) * N + cols[None, :], acc, mask=inside)


@triton.jit
def _reduce_kernel(
    workspace_ptr,  # (SPLIT_K, BATCH, M, N), contiguous
    c_ptr,  # (BATCH, M, N), None without HAS_C
    bias_ptr,  # (N,), None without HAS_BIAS
    out_ptr,  # (BATCH, M, N)
    batches,
    M,
    N,
    alpha,
    beta,
    stride_cb,
    stride_cm,
    stride_cn,
    stride_bias,
    stride_ob,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLIT_K: tl.constexpr,
    HAS_C: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    WIDE: tl.constexpr,
):
    batch, row, col = tile_corner(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, 1, WIDE)
    rows = span(row, BLOCK_M, WIDE)
    cols = span(col, BLOCK_N, WIDE)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), workspace_ptr.dtype.element_ty)
    slab_rows = batch * M + rows  # of split 0; stepping by whole splits keeps every product of indices 64-bit where WIDE
    for _ in range(SPLIT_K):
        acc += tl.load(workspace_ptr + slab_rows[:, None] * N + cols[None, :], mask=inside, other=0)
        slab_rows += batches * M
    store_tile(
        acc, c_ptr, bias_ptr, out_ptr, batch, rows, cols, M, N, alpha, beta,
        stride_cb, stride_cm, stride_cn, stride_bias, stride_ob, stride_om, stride_on, HAS_C, HAS_BIAS, ACTIVATION,
    )  # fmt: skip


REDUCE = triton.Config({"BLOCK_M": 16, "BLOCK_N": 64}, num_warps=4, num_stages=1)
LEAST = 512  # products of a split: with fewer it costs more than it brings
ROOMY = 255  # registers: as many as a thread can have


def configs(problem, target):
    """Enough splits to give every SM two programs, as far as K allows; then one and four of them."""
    smallest = min(count_tiles(problem, {"BLOCK_M": 64, "BLOCK_N": 64}, problem.batch), 2**30)
    wanted = triton.cdiv(2 * max(1, target.sms), max(1, smallest))
    first = triton.next_power_of_2(max(1, min(wanted, problem.k // LEAST, 64)))
    tiles = tiles_with_room(problem, target)
    if two_warpgroups_wait(problem, target):
        tiles = [tile for tile in tiles if tile[3] == 4]
    for split_k in dict.fromkeys((first, 4)):
        constants = {"GROUP_M": 8, "SPLIT_K": split_k, **packing(problem, target)}
        for config in tile_configs(problem, target, tiles, enough_tiles=1 / split_k, **constants):
            if target.arch >= 100:
                config.maxnreg = ROOMY  # left alone, ptxas spills there to fit one more block on an SM
            yield config


def launches(problem, config, a, b, c, bias, out):
    before, a, b, how = packed_operands(problem, config, a, b)
    yield from before
    tile, split_k = config.kwargs, config.kwargs["SPLIT_K"]
    slices = triton.cdiv(stored_k(problem), tile["BLOCK_K"])
    kind = WORKSPACES[problem.accumulate]
    workspace = torch.empty((split_k, *out.shape), dtype=kind, device=out.device)
    arguments = matmul_arguments(problem, a, b, c, bias, out) | how
    arguments |= {
        "workspace_ptr": workspace,
        "batches": out.shape[0],
        "k_per_split": triton.cdiv(slices, split_k) * tile["BLOCK_K"],
        "WIDE": arguments["WIDE"] or needs_wide_offsets(workspace),
    }
    yield TritonLaunch(_partial_kernel, (split_k * count_tiles(problem, tile, out.shape[0]),), config, arguments)
    grid = (count_tiles(problem, REDUCE.kwargs, out.shape[0]),)
    yield TritonLaunch(_reduce_kernel, grid, REDUCE, arguments | {"SPLIT_K": split_k})


DESIGN = Design(
    name="split_k",
    summary="several programs per tile, each with its range of K; partial sums added in a fixed order",
    mirrors="gemm: split_k",
    refuses=refuses_operands,
    configs=configs,
    launches=launches,
)
