"""Matrix product, split-K: SPLIT_K programs share a tile, each sums its own range of K, and their sums are added up.

Where M and N are small and K is large there are fewer tiles than SMs: 256 x 256 x 65536 in tiles of 64 x 64 is 16 programs on
132 SMs. Splitting K gives every SM work at the price of SPLIT_K partial results, written and read once: 8 M N SPLIT_K bytes.

The partial sums go through a workspace and are added in the order of k, never by atomics: the same bits every time. What adds
them also does what follows a product, so nothing is rounded before all of K is in. It is the last program of a tile to arrive,
which costs a trip through L2 where a second launch costs two microseconds; but of many splits of a big tile one SM would read
alone for longer than that, so these are added by a kernel of many programs.

Mirrors tritonkernels/gemm/split_k.py, the same for FP32 on CUDA cores.
"""

import torch
import triton
import triton.language as tl

from ..design import Design
from ..language.splits import last_to_arrive, sum_in_order
from ..language.tiles import span
from ..launch import TritonLaunch
from ..workspace import counters
from . import ALONG_K
from .arguments import matmul_arguments, stored_k
from .operands import packed_operands, refuses_operands
from .space import SPECIAL, count_tiles, fits, good_tiles, packing, shared_bytes, tile_configs
from .tile import store_tile, tile_corner, tile_product

WORKSPACES = {"fp32": torch.float32, "fp16": torch.float32, "fp64": torch.float64, "int32": torch.int32}


@triton.jit
def _split_kernel(
    a_ptr,  # (BATCH, M, K)
    b_ptr,  # (BATCH, K, N)
    c_ptr,  # (BATCH, M, N), None without HAS_C
    bias_ptr,  # (N,), None without HAS_BIAS
    out_ptr,  # (BATCH, M, N)
    workspace_ptr,  # (TILES, SPLIT_K, BLOCK_M, BLOCK_N)
    counters_ptr,  # (TILES,) zeros, None without LAST_ADDS
    batches,
    M,
    N,
    K,
    k_per_split,  # a multiple of BLOCK_K
    alpha,
    beta,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    stride_cb,
    stride_cm,
    stride_cn,
    stride_bias,
    stride_ob,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr,
    LAST_ADDS: tl.constexpr,
    HAS_C: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATE: tl.constexpr,
    ARE_TF32: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles = batches * tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    tile = tl.program_id(0) % tiles
    split = tl.program_id(0) // tiles
    batch, row, col = tile_corner(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
    rows = span(row, BLOCK_M, WIDE)
    cols = span(col, BLOCK_N, WIDE)
    first_k = split * k_per_split
    end_k = max(first_k, min(first_k + k_per_split, K))
    acc = tile_product(
        a_ptr + batch * stride_ab, b_ptr + batch * stride_bb, rows, cols, first_k, end_k, M, N,
        stride_am, stride_ak, stride_bk, stride_bn, BLOCK_K, PRECISION, ACCUMULATE, ARE_TF32, WIDE,
    )  # fmt: skip
    place = _place(workspace_ptr, tile, 0, BLOCK_M, BLOCK_M, BLOCK_N, SPLIT_K)
    tl.store(place + split * (BLOCK_M * BLOCK_N), acc)
    adds = last_to_arrive(counters_ptr + tile, SPLIT_K) if LAST_ADDS else False
    if adds:
        store_tile(
            sum_in_order(place, BLOCK_M * BLOCK_N, SPLIT_K), c_ptr, bias_ptr, out_ptr, batch, rows, cols, M, N, alpha, beta,
            stride_cb, stride_cm, stride_cn, stride_bias, stride_ob, stride_om, stride_on, HAS_C, HAS_BIAS, ACTIVATION,
        )  # fmt: skip


@triton.jit
def _add_splits_kernel(
    workspace_ptr,  # (TILES, SPLIT_K, BLOCK_M, BLOCK_N)
    c_ptr,  # (BATCH, M, N), None without HAS_C
    bias_ptr,  # (N,), None without HAS_BIAS
    out_ptr,  # (BATCH, M, N)
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
    ROWS: tl.constexpr,  # of a tile that a program adds up
    GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr,
    HAS_C: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    WIDE: tl.constexpr,
):
    tile = tl.program_id(0) // (BLOCK_M // ROWS)
    first_row = tl.program_id(0) % (BLOCK_M // ROWS) * ROWS
    batch, row, col = tile_corner(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
    rows = span(row + first_row, ROWS, WIDE)
    cols = span(col, BLOCK_N, WIDE)
    place = _place(workspace_ptr, tile, first_row, ROWS, BLOCK_M, BLOCK_N, SPLIT_K)
    store_tile(
        sum_in_order(place, BLOCK_M * BLOCK_N, SPLIT_K), c_ptr, bias_ptr, out_ptr, batch, rows, cols, M, N, alpha, beta,
        stride_cb, stride_cm, stride_cn, stride_bias, stride_ob, stride_om, stride_on, HAS_C, HAS_BIAS, ACTIVATION,
    )  # fmt: skip


@triton.jit
def _place(
    workspace_ptr, tile, first_row, ROWS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SPLIT_K: tl.constexpr
):
    """Pointers to ROWS rows of a tile's first split."""
    within = (first_row + tl.arange(0, ROWS))[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    return workspace_ptr + tile.to(tl.int64) * (SPLIT_K * BLOCK_M * BLOCK_N) + within


ADD_ROWS = 4
ALONE = 2**18  # bytes of partial sums of a tile that one SM adds up sooner than another kernel begins
LEAST = 512  # products of a split: with fewer it costs more than it brings
ROOMY = 255  # registers: as many as a thread can have
FOR_FEW_COLUMNS = ((64, 32, 256, 4, 4), (64, 16, 256, 4, 4))  # beside the tiles of space.py, which are for few rows
MUCH_K, FOR_MUCH_K = 2**14, (64, 128, 128, 4, 6)  # where what a tile fetches counts more than adding its splits up


def splits(problem, target, tile):
    """As many as give every SM two programs, or one where two do not fit, of LEAST products each at least; a power of two."""
    tiles = count_tiles(problem, {"BLOCK_M": tile[0], "BLOCK_N": tile[1]}, problem.batch)
    programs = max(1, target.sms) * max(1, min(2, target.shared_per_sm // shared_bytes(tile)))
    most = min(programs // max(1, tiles), problem.k // LEAST, 64)
    return 2 ** (max(1, most).bit_length() - 1)


def configs(problem, target):
    """First the smallest tile that covers up to 64 rows and columns, or FOR_MUCH_K; all in 4 splits too."""
    by_mma = target.arch == 120 or (target.arch, problem.precision) == (100, "int8")
    turns = by_mma and problem.precision in ALONG_K  # B in registers, which leaves no room for 64 x 64 sums
    tiles = [tile for tile in good_tiles(problem, target) if tile[0] * tile[1] <= (32 if turns else 64) * 64]
    if problem.precision not in (*SPECIAL, "fp8"):  # of which Hopper adds up numerics.FP8_SLICE at most without a wait
        tiles += [tile for tile in FOR_FEW_COLUMNS if fits(tile, problem, target)]

    def wasteful(tile):
        covers = tile[0] >= min(64, problem.m) and tile[1] >= min(64, problem.n)
        return not covers, tile[0] * tile[1]

    if not tiles:
        return
    tiles.sort(key=wasteful)
    if target.arch == 90 and problem.k >= MUCH_K and min(problem.m, problem.n) > 64 and problem.precision in ("fp16", "bf16"):
        tiles.insert(0, FOR_MUCH_K)
    for split_k in dict.fromkeys((splits(problem, target, tiles[0]), 4)):
        for config in tile_configs(problem, target, tiles, GROUP_M=8, SPLIT_K=split_k, **packing(problem, target)):
            if target.arch >= 100:
                config.maxnreg = ROOMY  # left alone, ptxas spills there to fit one more block on an SM
            yield config


def launches(problem, config, a, b, c, bias, out):
    before, a, b, how = packed_operands(problem, config, a, b)
    yield from before
    tile, split_k = config.kwargs, config.kwargs["SPLIT_K"]
    tiles, slices = count_tiles(problem, tile, out.shape[0]), triton.cdiv(stored_k(problem), tile["BLOCK_K"])
    shape = (tiles, split_k, tile["BLOCK_M"], tile["BLOCK_N"])
    workspace = torch.empty(shape, dtype=WORKSPACES[problem.accumulate], device=out.device)
    last_adds = workspace[:1].nbytes <= ALONE
    arguments = matmul_arguments(problem, a, b, c, bias, out) | how
    arguments |= {
        "workspace_ptr": workspace,
        "counters_ptr": counters(tiles, out) if last_adds else None,
        "batches": out.shape[0],
        "k_per_split": triton.cdiv(slices, split_k) * tile["BLOCK_K"],
        "LAST_ADDS": last_adds,
        "ROWS": ADD_ROWS,
    }
    yield TritonLaunch(_split_kernel, (split_k * tiles,), config, arguments)
    if not last_adds:
        kept = {name: tile[name] for name in ("BLOCK_M", "BLOCK_N", "GROUP_M", "SPLIT_K")}
        add = triton.Config(kept, num_warps=4, num_stages=1)
        yield TritonLaunch(_add_splits_kernel, (tiles * (tile["BLOCK_M"] // ADD_ROWS),), add, arguments)


DESIGN = Design(
    name="split_k",
    summary="several programs per tile, each with its range of K; partial sums added in a fixed order",
    mirrors="gemm: split_k",
    refuses=refuses_operands,
    configs=configs,
    launches=launches,
)
