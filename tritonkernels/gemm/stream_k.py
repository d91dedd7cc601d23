"""FP32 GEMM, stream-K: as many programs as fit on the GPU, each with the same number of slices of K.

With a program per tile the last wave is rarely full: 144 tiles on 132 SMs take two waves, and the second keeps 12 SMs busy:
55 % of the machine. Here whole waves are computed tile by tile, and the slices of the last WAVES form one line, cut into equal
pieces, one for each program, so there is no tail. A program whose piece covers a whole tile stores it. A tile that is cut is
written in parts, each to its program's place in a workspace, and a second kernel adds them in the order of k, without atomics:
the same bits every time. A full wave is shared with the partial one, so that every piece is at least a tile long.

A piece touches at most two cut tiles, one where it begins and one where it ends, so the workspace is 2 tiles per program.

Source: M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU
(2023), the variant called "two-tile". Mirrors cuda_reference/gemm/stream_k.cuh, where the last block of a tile adds its parts.
The write-up names it as future work ("the tail effect").
"""

from typing import Any, NamedTuple

import torch

from ..choice.work import MANY, sharers_of, streamed
from ..design import Design
from ..integers import ceil_div
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrix
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.gemm.float32_only import float32_only
from ..operations.gemm.work import of_streams
from .parts.packed_b import may_pack_b
from .parts.space import block_tile, blocked_configs, count_tiles
from .parts.tile import blas, rows_and_cols, store_tile, tile_product


class Pieces(NamedTuple):
    """How the line of slices of the tiles after the first whole_tiles is cut, and where parts of cut tiles go: (PROGRAMS, 2,
    BLOCK_M, BLOCK_N)."""

    ptr: Any
    whole_tiles: Any
    slices_per_tile: Any
    slices_per_program: Any


@triton.jit
def next_part(pieces, whole, at, end):
    """(tile, its slices from here, to here, whole, at): what a program does next, and what is left then. Its whole tiles come
    first, a wave's tiles at a time on all programs; then its piece of the line, from `at` to `end`."""
    tile, first, stop = whole, 0, pieces.slices_per_tile
    if whole >= pieces.whole_tiles:
        tile = pieces.whole_tiles + (at // pieces.slices_per_tile).to(tl.int32)
        first = (at % pieces.slices_per_tile).to(tl.int32)  # slices of this tile that earlier programs do
        stop = min(pieces.slices_per_tile, first + end - at).to(tl.int32)
        at += stop - first
    return tile, first, stop, whole + tl.num_programs(0), at


@triton.jit
def _stream_kernel(
    a: Matrix, b: Matrix, c: Matrix, out: Matrix, M, N, K, alpha, beta, pieces: Pieces,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    wait_for_earlier_kernels()
    whole = tl.program_id(0)
    program = whole.to(tl.int64)  # the line of slices may be longer than 2^31
    at = program * pieces.slices_per_program
    slices = (tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N) - pieces.whole_tiles).to(tl.int64) * pieces.slices_per_tile
    end = min(at + pieces.slices_per_program, slices)
    while (whole < pieces.whole_tiles) | (at < end):
        tile, first, stop, whole, at = next_part(pieces, whole, at, end)
        rows, cols = rows_and_cols(tile, N, BLOCK_M, BLOCK_N, WIDE)
        acc = tile_product(a, b, rows, cols, first * BLOCK_K, min(stop * BLOCK_K, K), M, N, BLOCK_K, WIDE)
        if (first == 0) & (stop == pieces.slices_per_tile):
            store_tile(acc, c, out, rows, cols, M, N, alpha, beta)
        else:  # a program's first slot is for a tile that another one began, its second for one that it begins
            slot = 2 * program + (first == 0).to(tl.int32)
            within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
            tl.store(pieces.ptr + slot * (BLOCK_M * BLOCK_N) + within, acc)


@triton.jit
def _add_parts_kernel(
    pieces: Pieces, c: Matrix, out: Matrix, M, N, alpha, beta,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    wait_for_earlier_kernels()
    tile = tl.program_id(0)  # of those in the line
    line = tile.to(tl.int64) * pieces.slices_per_tile
    first = line // pieces.slices_per_program  # the programs that share the tile
    last = (line + pieces.slices_per_tile - 1) // pieces.slices_per_program
    if first < last:
        within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        place = pieces.ptr + first * (2 * BLOCK_M * BLOCK_N)
        acc = tl.load(place + BLOCK_M * BLOCK_N + within)
        for _ in range(first, last):
            place += 2 * BLOCK_M * BLOCK_N
            acc += tl.load(place + within)
        rows, cols = rows_and_cols(pieces.whole_tiles + tile, N, BLOCK_M, BLOCK_N, WIDE)
        store_tile(acc, c, out, rows, cols, M, N, alpha, beta)


WAVES = 2


def configs(problem, target):
    """A program per SM: a big tile fills its registers, and without a tail there is no need for a smaller one."""
    return blocked_configs(problem, target, num_stages=(3, 2), PROGRAMS=target.sms or 5)


def cut(tiles, k, tile, device):
    """(programs, how many of the tiles they share to the slice, the Pieces that they get). Where tiles have equally many parts,
    the last one may have slices past K."""
    programs, slices_per_tile = tile["PROGRAMS"], max(1, ceil_div(k, tile["BLOCK_K"]))
    shared = streamed(tiles, programs, WAVES)
    slices_per_program = ceil_div(shared * slices_per_tile, programs)
    if 0 < MANY * shared < programs:
        slices_per_program = ceil_div(slices_per_tile, sharers_of(shared, slices_per_tile, programs) // shared)
        slices_per_tile = ceil_div(slices_per_tile, slices_per_program) * slices_per_program
    if shared == tiles:  # fewer programs take equally long
        programs = ceil_div(shared * slices_per_tile, slices_per_program)
    shape = (programs if shared else 0, 2, tile["BLOCK_M"], tile["BLOCK_N"])
    parts = torch.empty(shape, dtype=torch.float32, device=device)
    return programs, shared, Pieces(parts, tiles - shared, slices_per_tile, slices_per_program)


def launches(problem, config, a, b, c, out):
    tiles = count_tiles(problem, config.kwargs)
    programs, shared, pieces = cut(tiles, problem.k, config.kwargs, out.device)
    yield TritonLaunch(_stream_kernel, (programs,), config, *blas(problem, a, b, c, out), pieces, WIDE=problem.wide)
    if pieces.slices_per_program % pieces.slices_per_tile:  # a cut goes through a tile
        operands = pieces, Matrix.of(c), Matrix.of(out), problem.m, problem.n, problem.alpha, problem.beta
        yield TritonLaunch(_add_parts_kernel, (shared,), config, *operands, WIDE=problem.wide)


def tile(config):
    return block_tile(config) | {"programs": config.kwargs["PROGRAMS"], "waves": WAVES}


DESIGN = may_pack_b(Design(refuses=float32_only, configs=configs, launches=launches, work=of_streams(tile)))
