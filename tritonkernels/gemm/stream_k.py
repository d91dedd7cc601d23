"""FP32 GEMM, stream-K: as many programs as fit on the GPU, and every one gets the same number of slices of K to multiply.

With a program per tile the last wave is rarely full: 144 tiles on 132 SMs take two waves, and the second keeps 12 SMs busy:
55 % of the machine. Here the slices of all tiles form one line, cut into PROGRAMS equal pieces, so nobody waits for a tail. A
program whose piece covers a whole tile writes it; a tile that a cut goes through is written in parts, each to its program's
place in a workspace, and a second kernel adds them in the order of k. Nothing is ever added by atomics: the same bits every
time.

A piece touches at most two cut tiles, one where it begins and one where it ends, so the workspace is 2 tiles per program.

Source: M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU
(2023). Mirrors cuda_reference/gemm/stream_k.cuh, which the seed names as future work ("the tail effect").
"""

import torch
import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.tiles import span
from ..launch import TritonLaunch
from .arguments import gemm_arguments
from .space import blocked_configs, count_tiles
from .tile import store_tile, tile_product


@triton.jit
def _stream_kernel(
    a_ptr,  # (M, K)
    b_ptr,  # (K, N)
    c_ptr,  # (M, N), None without HAS_C
    out_ptr,  # (M, N)
    workspace_ptr,  # (PROGRAMS, 2, BLOCK_M, BLOCK_N)
    M,
    N,
    K,
    alpha,
    beta,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    stride_om,
    stride_on,
    slices_per_tile,
    slices_per_program,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    HAS_C: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0).to(tl.int64)  # the line of slices may be longer than 2^31
    at = program * slices_per_program
    end = min(at + slices_per_program, (tl.cdiv(M, BLOCK_M) * tiles_n).to(tl.int64) * slices_per_tile)
    place = workspace_ptr + program * (2 * BLOCK_M * BLOCK_N)
    while at < end:
        tile = (at // slices_per_tile).to(tl.int32)
        first = (at % slices_per_tile).to(tl.int32)  # slices of this tile that earlier programs do
        stop = min(slices_per_tile, first + end - at).to(tl.int32)
        rows = span(tile // tiles_n * BLOCK_M, BLOCK_M, WIDE)
        cols = span(tile % tiles_n * BLOCK_N, BLOCK_N, WIDE)
        first_k = first * BLOCK_K
        end_k = min(stop * BLOCK_K, K)
        acc = tile_product(
            a_ptr, b_ptr, rows, cols, first_k, end_k, M, N, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_K, WIDE
        )
        if (first == 0) & (stop == slices_per_tile):
            store_tile(acc, c_ptr, out_ptr, rows, cols, M, N, alpha, beta, stride_cm, stride_cn, stride_om, stride_on, HAS_C)
        else:  # place 0 for a tile that another program began, place 1 for one that this program begins
            begins = (first == 0).to(tl.int32)
            within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
            tl.store(place + begins * (BLOCK_M * BLOCK_N) + within, acc)
        at += stop - first


@triton.jit
def _add_parts_kernel(
    workspace_ptr,  # (PROGRAMS, 2, BLOCK_M, BLOCK_N)
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
    slices_per_tile,
    slices_per_program,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HAS_C: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    tile = tl.program_id(0)
    line = tile.to(tl.int64) * slices_per_tile
    first = line // slices_per_program  # the programs that share the tile
    last = (line + slices_per_tile - 1) // slices_per_program
    if first < last:
        within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        place = workspace_ptr + first * (2 * BLOCK_M * BLOCK_N)
        acc = tl.load(place + BLOCK_M * BLOCK_N + within)
        for _ in range(first, last):
            place += 2 * BLOCK_M * BLOCK_N
            acc += tl.load(place + within)
        rows = span(tile // tiles_n * BLOCK_M, BLOCK_M, WIDE)
        cols = span(tile % tiles_n * BLOCK_N, BLOCK_N, WIDE)
        store_tile(acc, c_ptr, out_ptr, rows, cols, M, N, alpha, beta, stride_cm, stride_cn, stride_om, stride_on, HAS_C)


def configs(problem, target):
    """A program per SM: a big tile fills its registers, and there is no tail for which to choose a smaller one."""
    return blocked_configs(problem, target, num_stages=(3, 2), enough_tiles=0.25, PROGRAMS=target.sms or 5)


def launches(problem, config, a, b, c, out):
    tile = config.kwargs
    tiles = count_tiles(problem, tile)
    slices_per_tile = max(1, triton.cdiv(problem.k, tile["BLOCK_K"]))
    slices_per_program = triton.cdiv(tiles * slices_per_tile, tile["PROGRAMS"])
    programs = triton.cdiv(tiles * slices_per_tile, slices_per_program)
    shape = (programs, 2, tile["BLOCK_M"], tile["BLOCK_N"])
    arguments = gemm_arguments(problem, a, b, c, out) | {
        "workspace_ptr": torch.empty(shape, dtype=torch.float32, device=out.device),
        "slices_per_tile": slices_per_tile,
        "slices_per_program": slices_per_program,
    }
    yield TritonLaunch(_stream_kernel, (programs,), config, arguments)
    yield TritonLaunch(_add_parts_kernel, (tiles,), config, arguments)


DESIGN = Design(
    name="stream_k",
    summary="a fixed number of programs, each with the same number of slices; cut tiles are added up in a fixed order",
    mirrors="gemm seed: future work, tail effect",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
