"""Matrix product, stream-K: a program per SM, and every one gets the same number of slices of K to multiply.

With a program per tile the last wave is rarely full: 144 tiles on 132 SMs take two waves, and the second keeps 12 SMs busy:
55 % of the machine. Here the slices of all tiles form one line, cut into PROGRAMS equal pieces, so nobody waits for a tail. A
program whose piece covers a whole tile writes it; a tile that a cut goes through is written in parts, each to its program's
place in a workspace, and a second kernel adds them in the order of k. Nothing is ever added by atomics: the same bits every
time.

A piece touches at most two cut tiles, one where it begins and one where it ends, so the workspace is 2 tiles per program.

Source: M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU
(2023). Mirrors tritonkernels/gemm/stream_k.py, the same for FP32 on CUDA cores.
"""

import torch
import triton
import triton.language as tl

from ..design import Design
from ..language.tiles import span
from ..launch import TritonLaunch
from .arguments import matmul_arguments, stored_k
from .operands import packed_operands, refuses_operands
from .space import count_tiles, packing, tile_configs, tiles_with_room
from .split_k import WORKSPACES
from .tile import store_tile, tile_corner, tile_product


@triton.jit
def _stream_kernel(
    a_ptr,  # (BATCH, M, K)
    b_ptr,  # (BATCH, K, N)
    c_ptr,  # (BATCH, M, N), None without HAS_C
    bias_ptr,  # (N,), None without HAS_BIAS
    out_ptr,  # (BATCH, M, N)
    workspace_ptr,  # (PROGRAMS, 2, BLOCK_M, BLOCK_N)
    batches,
    M,
    N,
    K,
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
    slices_per_tile,
    slices_per_program,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    HAS_C: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATE: tl.constexpr,
    ARE_TF32: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles = batches * tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0).to(tl.int64)  # the line of slices may be longer than 2^31
    at = program * slices_per_program
    end = min(at + slices_per_program, tiles.to(tl.int64) * slices_per_tile)
    place = workspace_ptr + program * (2 * BLOCK_M * BLOCK_N)
    while at < end:
        tile = (at // slices_per_tile).to(tl.int32)
        first = (at % slices_per_tile).to(tl.int32)  # slices of this tile that earlier programs do
        stop = min(slices_per_tile, first + end - at).to(tl.int32)
        batch, row, col = tile_corner(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
        rows = span(row, BLOCK_M, WIDE)
        cols = span(col, BLOCK_N, WIDE)
        acc = tile_product(
            a_ptr + batch * stride_ab, b_ptr + batch * stride_bb, rows, cols, first * BLOCK_K, min(stop * BLOCK_K, K), M, N,
            stride_am, stride_ak, stride_bk, stride_bn, BLOCK_K, PRECISION, ACCUMULATE, ARE_TF32, WIDE,
        )  # fmt: skip
        if (first == 0) & (stop == slices_per_tile):
            store_tile(
                acc, c_ptr, bias_ptr, out_ptr, batch, rows, cols, M, N, alpha, beta,
                stride_cb, stride_cm, stride_cn, stride_bias, stride_ob, stride_om, stride_on, HAS_C, HAS_BIAS, ACTIVATION,
            )  # fmt: skip
        else:  # place 0 for a tile that another program began, place 1 for one that this program begins
            begins = (first == 0).to(tl.int32)
            within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
            tl.store(place + begins * (BLOCK_M * BLOCK_N) + within, acc)
        at += stop - first


@triton.jit
def _add_parts_kernel(
    workspace_ptr,  # (PROGRAMS, 2, BLOCK_M, BLOCK_N)
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
    slices_per_tile,
    slices_per_program,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    ROWS: tl.constexpr,  # of the tile that a program adds up: it holds no operands, so it can do with fewer registers
    GROUP_M: tl.constexpr,
    HAS_C: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    WIDE: tl.constexpr,
):
    tile = tl.program_id(0) // (BLOCK_M // ROWS)
    first_row = tl.program_id(0) % (BLOCK_M // ROWS) * ROWS
    line = tile.to(tl.int64) * slices_per_tile
    first = line // slices_per_program  # the programs that share the tile
    last = (line + slices_per_tile - 1) // slices_per_program
    if first < last:
        within = (first_row + tl.arange(0, ROWS))[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        place = workspace_ptr + first * (2 * BLOCK_M * BLOCK_N)
        acc = tl.load(place + BLOCK_M * BLOCK_N + within)
        for _ in range(first, last):
            place += 2 * BLOCK_M * BLOCK_N
            acc += tl.load(place + within)
        batch, row, col = tile_corner(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
        rows = span(row + first_row, ROWS, WIDE)
        cols = span(col, BLOCK_N, WIDE)
        store_tile(
            acc, c_ptr, bias_ptr, out_ptr, batch, rows, cols, M, N, alpha, beta,
            stride_cb, stride_cm, stride_cn, stride_bias, stride_ob, stride_om, stride_on, HAS_C, HAS_BIAS, ACTIVATION,
        )  # fmt: skip


ADD_ROWS = 16


def refuses(problem, target):
    if problem.precision == "fp64" and target.arch == 120:
        return f"no tile of doubles stays in the registers of {target.name}, whose CUDA cores multiply them"
    return refuses_operands(problem, target)


def configs(problem, target):
    """A program per SM, on the biggest tile: there is no tail for which to choose a smaller one."""
    tiles = tiles_with_room(problem, target)
    constants = {"GROUP_M": 8, "PROGRAMS": target.sms or 5, **packing(problem, target)}
    return tile_configs(problem, target, [tile for tile in tiles if tile[3] == 8] or tiles, **constants)


def launches(problem, config, a, b, c, bias, out):
    before, a, b, how = packed_operands(problem, config, a, b)
    yield from before
    tile = config.kwargs
    tiles = count_tiles(problem, tile, out.shape[0])
    slices_per_tile = max(1, triton.cdiv(stored_k(problem), tile["BLOCK_K"]))
    slices_per_program = triton.cdiv(tiles * slices_per_tile, tile["PROGRAMS"])
    programs = triton.cdiv(tiles * slices_per_tile, slices_per_program)
    shape = (programs, 2, tile["BLOCK_M"], tile["BLOCK_N"])
    arguments = matmul_arguments(problem, a, b, c, bias, out) | how
    arguments |= {
        "workspace_ptr": torch.empty(shape, dtype=WORKSPACES[problem.accumulate], device=out.device),
        "batches": out.shape[0],
        "slices_per_tile": slices_per_tile,
        "slices_per_program": slices_per_program,
        "ROWS": ADD_ROWS,
    }
    yield TritonLaunch(_stream_kernel, (programs,), config, arguments)
    if slices_per_program % slices_per_tile == 0:  # no cut goes through a tile
        return
    add = triton.Config({name: tile[name] for name in ("BLOCK_M", "BLOCK_N", "GROUP_M")}, num_warps=4, num_stages=1)
    yield TritonLaunch(_add_parts_kernel, (tiles * (tile["BLOCK_M"] // ADD_ROWS),), add, arguments)


DESIGN = Design(
    name="stream_k",
    summary="a fixed number of programs, each with the same number of slices; cut tiles are added up in a fixed order",
    mirrors="gemm: stream_k",
    refuses=refuses,
    configs=configs,
    launches=launches,
)
